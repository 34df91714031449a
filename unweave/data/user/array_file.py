"""Data sets from files of arrays; the file formats are listed in `formats`.

Shape letters: N observations, K factors.
"""

import hashlib
import os
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from unweave.data.dataset import SourceInfo
from unweave.data.storage.digest import SAMPLED_NOTE, file_part, file_state
from unweave.data.storage.memory_limit import memory_limit
from unweave.data.storage.regular_file import irregular_kind
from unweave.data.user.arrays import Arrays, check_fingerprint
from unweave.data.user.factor_table import FactorTable, factor_table, no_factors, read_as_stored
from unweave.data.user.formats import ACCEPTED, find_format
from unweave.data.user.pixels import CURRENT_RULES, ArrayOptions, options_of_rules_1, to_pixels
from unweave.data.user.table_file import read_table
from unweave.data.user.wording import display_path
from unweave.errors import UserError, UserNotice, check_choice, check_integer, check_path, invalid

_IMAGES = ("images", "imgs", "image", "x", "X", "x_train", "data", "pixels", "arr_0")
_FACTORS = ("factors", "latents_classes", "labels", "label", "y", "y_train", "targets", "classes", "arr_1")
_NAMES = ("factor_names", "names", "latents_names")
_HASH_ALL, _BLOCKS, _BLOCK = 64 << 20, 64, 1 << 20  # files up to _HASH_ALL bytes are hashed completely


class _Factors(NamedTuple):
    """Factors, and the reason for each column that is not one."""

    table: FactorTable
    excluded: dict[str, str]


def array_info(
    path: Path | None, images: np.ndarray, notes: Sequence[str], excluded: Mapping[str, str] | None = None
) -> SourceInfo:
    """Describe the source of arrays; `path` is None if they are in memory."""
    form = f"{images.dtype} {list(images.shape)}"
    title = f"{form} in memory" if path is None else display_path(path)
    return SourceInfo(title, [("form", form)], notes, excluded_columns=excluded or {})


def array_file(
    path: str | Path | None = None,
    *,
    factors: str | Path | None = None,
    columns: Sequence[str] | None = None,
    factor_types: Mapping[str, str] | None = None,
    layout: str | None = None,
    size: int | None = None,
    fit: str = "crop",
    channels: str = "auto",
    background: str = "white",
    white: int | None = None,
    alpha: bool = False,
    rules: int = CURRENT_RULES,
    resident: bool | None = None,
    fingerprint: str | None = None,
) -> Arrays:
    """Open the images of a file such as .npy or .npz, and its factors if it has any.

    `factors` is the name of another array of the file, or a .csv or .parquet with the rows in the order of the images.
    `layout` is NCHW, NHWC or NHW, needed if the shape is ambiguous. If `size` or `channels` is given, images are
    converted to it. `white` is the integer that is white, by default 1, 255 or 65535. With `alpha` the last of 2 or 4
    channels is transparency. `fingerprint` identifies the content that a run of an older version was trained on, and
    `rules` the version of the rules by which it read layouts and channels.
    """
    if path is None:
        message = "data were arrays in memory, which a run does not store; pass them again as data="
        raise UserError(message, argument="data", accepted="the arrays")
    source = check_path("path", path)
    context = f"data {str(source)!r}"
    format = find_format(source)
    if format is None or not source.is_file():
        kind = irregular_kind(source)
        hint = f"it is {kind}" if kind else ""
        raise invalid("data", str(source), f"{ACCEPTED} that exists", hint=hint)
    state = file_state(source.stat())
    arrays = format.load(source, resident is False or (resident is None and source.stat().st_size > memory_limit()))
    images, key = _find_images(arrays, context)
    image_options = ArrayOptions(layout, size, fit, channels, background, white, alpha)
    if check_integer("rules", rules, 1, CURRENT_RULES) == 1:
        image_options = options_of_rules_1(images, image_options)
    pixels = to_pixels(images, context, image_options)
    count, notes = len(pixels.images), pixels.notes
    available, used = _find_columns(arrays, key, factors, count, context)
    if not available and (columns or factor_types):
        option, value = ("columns", columns) if columns else ("factor_types", factor_types)
        raise invalid(option, value, "left out for data without factors", context=context)

    def read_factors(earlier: bool) -> _Factors:
        if not available:
            return _Factors(no_factors(count), {})
        return _Factors(*factor_table(available, factor_types, select=columns, earlier=earlier))

    table, excluded = read_as_stored(read_factors, fingerprint, source)
    if unused := [name for name in arrays if name not in (key, *used)]:
        notes = (*notes, f"not used: {', '.join(unused)}")
    if fingerprint is not None:
        check_fingerprint(source, source, fingerprint, f"{count}-{_fingerprint(source)}-{table.digest()}")
    data = Arrays(pixels.images, table, resident=resident, copy=False)
    if data.pixels.data_ptr() == images.ctypes.data:  # not converted
        data.pixels_file = file_part(source, state, key, pixels.images)
    data.preprocessing, data.source_info = pixels.preprocessing, array_info(source, images, notes, excluded)
    table_path = str(check_path("factors", factors)) if factors and Path(factors).suffix else None
    given = dict(columns=list(columns or ()) or None, factor_types=dict(factor_types or {}) or None, layout=layout)
    shaped = dict(size=size, fit=fit, channels=channels, background=background, white=white, alpha=alpha or None)
    read: dict[str, object] = {"path": str(source), "factors": table_path or factors, "rules": rules}
    options: dict[str, object] = {**read, **given, **shaped, "resident": resident, "fingerprint": fingerprint}
    data.options = {name: value for name, value in options.items() if value is not None}
    return data


def _find_images(arrays: Mapping[str, np.ndarray], context: str) -> tuple[np.ndarray, str]:
    """Return the array with one of the usual names, or the only array that can be images, and its name."""
    candidates = [name for name, array in arrays.items() if array.ndim in (3, 4)]
    for name in _IMAGES:
        if name in candidates:
            return arrays[name], name
    if len(candidates) == 1:
        return arrays[candidates[0]], candidates[0]
    shapes = ", ".join(f"{name} {list(array.shape)}" for name, array in arrays.items()) or "nothing"
    raise invalid("images", shapes, "an array with 3 or 4 dimensions called 'images'", context=context)


def _fingerprint(path: Path) -> str:
    """Return the digest that older versions stored: of all bytes of a file, or of blocks of it if it is large."""
    digest, size = hashlib.blake2b(digest_size=6), path.stat().st_size
    digest.update(str(size).encode())
    with open(path, "rb") as file:
        if size <= _HASH_ALL:
            digest.update(file.read())
        else:
            warnings.warn(f"'{path}': {SAMPLED_NOTE}", UserNotice, stacklevel=2)
            for start in np.linspace(0, size - _BLOCK, _BLOCKS).astype(np.int64):
                file.seek(int(start), os.SEEK_SET)
                digest.update(file.read(_BLOCK))
    return digest.hexdigest()


def _find_columns(
    arrays: Mapping[str, np.ndarray], images: str, factors: str | Path | None, count: int, context: str
) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Return the columns of the factors, and the names of the arrays that were used."""
    if factors is not None and Path(factors).suffix:
        frame = read_table(factors)
        if len(frame) != count:
            raise invalid("factors", f"{len(frame)} rows", f"one row for each of the {count} images, in their order")
        return {str(name): frame[name] for name in frame}, ()
    if factors is not None:
        others = [name for name in arrays if name != images]
        check_choice("factors", str(factors), others, context=context)
    usual = (n for n in _FACTORS if n in arrays and n != images and arrays[n].shape[:1] == (count,))
    key = factors or next(usual, None)
    return _columns_of(arrays, str(key), count) if key is not None else ({}, ())


def _columns_of(arrays: Mapping[str, np.ndarray], key: str, count: int) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Return the columns of an array of factors by name, and the names of the arrays that were used."""
    values = arrays[key]
    values = values[:, None] if values.ndim == 1 else values
    if values.ndim != 2 or len(values) != count:
        accepted = f"one row for each of the {count} images"
        raise invalid("factors", list(arrays[key].shape), accepted, context=f"array {key!r}")
    named = next((n for n in _NAMES if n in arrays and arrays[n].shape == (values.shape[1],)), None)
    if named:
        names = [str(name) for name in arrays[named]]
        if len(set(names)) < len(names):
            raise invalid("factor names", names, "different names", context=f"array {named!r}")
    else:
        names = [key] if values.shape[1] == 1 else [f"{key}{k}" for k in range(values.shape[1])]
    return dict(zip(names, values.T)), (key, named) if named else (key,)
