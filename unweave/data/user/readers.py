"""Your own data: what a path, an array or somebody's data set is read with."""

from __future__ import annotations

import difflib
import inspect
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from torch import Tensor

from unweave.data.user.array_file import ArrayInfo, array_file, as_pixels
from unweave.data.user.arrays import Arrays
from unweave.data.user.folder import folder
from unweave.data.user.image_io import Preprocessing
from unweave.data.user.items import is_items, items
from unweave.errors import UserError, check_choice, check_integer

USER_DATASETS: dict[str, Callable[..., Arrays]] = {
    "folder": folder,
    "arrays": array_file,
}  # as a run's config names them


def open_user_data(what: Any, names: Collection[str], options: Mapping[str, Any]) -> Arrays | None:
    """The data at a path or in an object; None where it is neither, so that it may be a name or a call text."""
    read: Callable[..., Arrays] | None
    if isinstance(what, str | Path):
        read = _reader(str(what), names)
    elif isinstance(what, np.ndarray | Tensor):
        read = in_memory
    else:
        read = items if is_items(what) else None
    if read is None:
        return None
    accepted = list(inspect.signature(read).parameters)[1:]
    for option in options:
        check_choice("option", option, accepted, context=f"data {_shown(what)}")
    return read(what, **options)


def _shown(what: Any) -> str:
    return repr(str(what)) if isinstance(what, str | Path) else type(what).__name__


def _reader(text: str, names: Collection[str]) -> Callable[..., Arrays] | None:
    """A path is what is there and is not the name of a data set, or what can be nothing but a path."""
    if text.strip() in names:
        return None
    path = Path(text).expanduser()
    if _true(path.is_dir):
        return folder
    if path.suffix.lower() in (".npy", ".npz") and not text.rstrip().endswith(")"):
        return array_file
    if _true(path.is_file):
        raise UserError(f"data '{text}' is a file of an unknown kind; give a folder of pictures, an .npy or an .npz")
    if "(" not in text and any(sign in text for sign in "/\\~"):
        raise UserError(f"data '{text}' is not there; give a folder of pictures, an .npy or an .npz")
    _misspelt(text, names)
    return None


def _misspelt(text: str, names: Collection[str]) -> None:
    """Raises if this is nearer to the name of a folder here than to that of a data set."""
    here = [place.name for place in Path().iterdir() if place.is_dir() or place.suffix in (".npy", ".npz")]
    name = text.partition("(")[0].strip()  # of a call the name alone: what it is given may be like anything
    near = [] if name in names else difflib.get_close_matches(text, [*names, *here], n=1, cutoff=0.5)
    if near and near[0] in here and near[0] not in names:
        raise UserError(f"data '{text}' is neither a data set nor a folder here; did you mean '{near[0]}'?")


def _true(question: Callable[[], bool]) -> bool:
    try:
        return question()
    except (OSError, ValueError):  # too long, or with a null in it: no path
        return False


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
    resident: bool | None = None,
) -> Arrays:
    """Images in bytes or in 0..1, of any layout; factors [N, K] of any values."""
    given = images.detach().cpu().numpy() if isinstance(images, Tensor) else images
    preprocessing = Preprocessing(
        0 if size is None else check_integer("size", size, 8, 512), fit, channels, background
    ).checked()
    pixels, notes = as_pixels(given, "data", layout, preprocessing)
    table = None if factors is None else np.asarray(factors)
    data = Arrays(
        pixels, table[:, None] if table is not None and table.ndim == 1 else table, names=names, resident=resident
    )
    data.source_info = ArrayInfo(None, f"{given.dtype} {list(given.shape)}", notes)
    return data
