"""Open user data: a folder, a file of arrays, arrays in memory, or the data set of another library."""

import difflib
import inspect
import os
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from torch import Tensor

from unweave.data.option_types import check_options
from unweave.data.user.array_file import array_file, array_info
from unweave.data.user.arrays import Arrays
from unweave.data.user.folder import folder
from unweave.data.user.formats import ACCEPTED, find_format
from unweave.data.user.items import is_items, items
from unweave.data.user.pixels import ArrayOptions, to_pixels
from unweave.data.user.value_range import as_array
from unweave.errors import UserError, check_choice, invalid

USER_DATASETS: dict[str, Callable[..., Arrays]] = {"folder": folder, "arrays": array_file}  # names in a run's config


def open_user_data(source: Any, names: Collection[str], options: Mapping[str, Any]) -> Arrays | None:
    """Open the data at a path or in an object; return None if it is neither, but may be the name of a data set."""
    read: Callable[..., Arrays] | None
    if isinstance(source, str | Path):
        read, shown = _find_reader(str(source), names), repr(str(source))
    else:
        read = in_memory if isinstance(source, np.ndarray | Tensor) else items if is_items(source) else None
        shown = type(source).__name__
    if read is None:
        return None
    for option in options:
        check_choice("option", option, list(inspect.signature(read).parameters)[1:], context=f"data {shown}")
    return read(source, **check_options(read, options, f"data {shown}"))


def _find_reader(text: str, names: Collection[str]) -> Callable[..., Arrays] | None:
    """Return the reader of a path, None if the text is or may be the name of a data set."""
    if text.strip() in names:
        return None
    path = Path(os.path.expanduser(text))
    if _is_true(path.is_dir):
        return folder
    if find_format(path) and not text.rstrip().endswith(")"):
        return array_file
    is_file = _is_true(path.is_file)
    if is_file or ("(" not in text and any(sign in text for sign in "/\\~")):
        problem = "is a file of an unknown format" if is_file else "does not exist"
        raise UserError(f"data {text!r} {problem}; pass {ACCEPTED}", argument="data", value=text, accepted=ACCEPTED)
    _check_misspelt_path(text, names)
    return None


def _check_misspelt_path(text: str, names: Collection[str]) -> None:
    """Raise if the text resembles a path in the current folder more than the name of a data set."""
    here = [path.name for path in Path().iterdir() if path.is_dir() or find_format(path)]
    name = text.partition("(")[0].strip()
    near = [] if name in names else difflib.get_close_matches(text, [*names, *here], n=1, cutoff=0.5)
    if near and near[0] in here and near[0] not in names:
        message = f"data {text!r} is neither a data set nor a path; did you mean {near[0]!r}?"
        raise UserError(message, argument="data", value=text, accepted=[*names, *here])


def _is_true(test: Callable[[], bool]) -> bool:
    try:
        return test()
    except (OSError, ValueError):  # too long for a path, or contains a null character
        return False


def _as_columns(factors: Any) -> np.ndarray:
    """Return factors as an array [N, K] in which no value was converted: a list may mix long integers and fractions."""
    if isinstance(factors, Tensor):
        factors = factors.detach().cpu()
        table = (factors.double() if factors.is_floating_point() else factors).numpy()  # numpy has no bfloat16
    else:
        table = factors if isinstance(factors, np.ndarray) else np.asarray(factors, dtype=object)
    return table[:, None] if table.ndim == 1 else table


def in_memory(
    images: np.ndarray | Tensor,
    *,
    factors: Any = None,
    names: Sequence[str] | None = None,
    layout: str | None = None,
    size: int | None = None,
    fit: str = "crop",
    channels: str = "auto",
    background: str = "white",
    white: int | None = None,
    alpha: bool = False,
    resident: bool | None = None,
) -> Arrays:
    """Return a data set of images of any layout and values, and factors [N, K] of any values."""
    given = as_array(images)
    pixels = to_pixels(given, "data", ArrayOptions(layout, size, fit, channels, background, white, alpha))
    table = None if factors is None else _as_columns(factors)
    if table is None and names:
        raise invalid("names", names, "left out if factors is not given")
    copy = np.may_share_memory(pixels.images, given)
    data = Arrays(pixels.images, table, names=names, resident=resident, copy=copy)
    data.preprocessing, data.source_info = pixels.preprocessing, array_info(None, given, pixels.notes)
    return data
