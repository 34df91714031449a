"""Arrays from .npy and .npz files, and what arrays of images from elsewhere may look like.

Shape letters: N observations, K factors, C channels, H height, W width.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from unweave.data.dataset import SourceInfo
from unweave.data.storage.memmap import memory_limit, open_memmap
from unweave.data.user.arrays import Arrays
from unweave.data.user.factor_table import FactorTable, factor_table, no_factors, read_table
from unweave.data.user.image_io import Preprocessing, preprocess_image
from unweave.errors import UserError, check_choice, check_integer

LAYOUTS = ("NCHW", "NHWC", "NHW")
_IMAGES = ("images", "imgs", "image", "x", "X", "x_train", "data", "pixels", "arr_0")
_FACTORS = ("factors", "latents_classes", "labels", "label", "y", "y_train", "targets", "classes", "arr_1")
_NAMES = ("factor_names", "names", "latents_names")
_WHOLE, _BLOCKS, _BLOCK = 64 << 20, 64, 1 << 20  # files up to _WHOLE bytes are read whole for their fingerprint


AS_IT_IS = Preprocessing(0)


@dataclass(frozen=True)
class ArrayInfo(SourceInfo):
    """Where arrays come from."""

    path: Path | None  # None: in memory
    form: str  # "uint8 [1000, 32, 32, 3]"
    notes: tuple[str, ...]  # conversions, and arrays that are not used
    left_out: Mapping[str, str] = field(default_factory=dict)

    @property
    def excluded_columns(self) -> Mapping[str, str]:
        return self.left_out


def array_file(
    path: str | Path | None = None,
    *,
    factors: str | Path | None = None,
    columns: Sequence[str] | None = None,
    kinds: Mapping[str, str] | None = None,
    layout: str | None = None,
    size: int | None = None,
    fit: str = "crop",
    channels: str = "auto",
    background: str = "white",
    resident: bool | None = None,
    fingerprint: str | None = None,
) -> Arrays:
    """The images in an .npy or .npz file; from an .npz also factors, if it has them.

    `factors` is another of its arrays, or a .csv or .parquet with the rows in the order of the images. `layout` is
    NCHW, NHWC or NHW where the shape leaves it open. With `size` (or `channels`) images are brought to it.
    """
    if path is None:
        raise UserError("these data were arrays in memory, which a run cannot keep; give them again with data=")
    source = Path(path).expanduser().resolve()
    arrays = _read(source, resident)
    images, key = _pick(arrays, source)
    form = f"{images.dtype} {list(images.shape)}"
    preprocessing = Preprocessing(
        0 if size is None else check_integer("size", size, 8, 512), fit, channels, background
    ).checked()
    pixels, notes = as_pixels(images, str(source), layout, preprocessing)
    table, left_out, used = _factors(arrays, key, factors, columns, kinds, len(pixels), source)
    unused = [name for name in arrays if name not in (key, *used)]
    if unused:
        notes = (*notes, f"not used: {', '.join(unused)}")
    now = f"{len(pixels)}-{_digest(source)}-{table.digest()}"
    if fingerprint not in (None, now):
        raise UserError(f"'{source}' is not the file the run was made with; put it back, or give data= of your own")
    data = Arrays(pixels, table, resident=resident, copy=False)
    data.source_info = ArrayInfo(source, form, notes, left_out)
    given = {"columns": list(columns) if columns else None, "kinds": dict(kinds) if kinds else None, "layout": layout}
    shaped = dict(size=size, fit=fit, channels=channels, background=background, resident=resident)
    options: dict[str, object] = {"path": str(source), "factors": factors and _absolute(factors), **given, **shaped}
    data.options = {name: value for name, value in options.items() if value is not None} | {"fingerprint": now}
    return data


def _absolute(factors: str | Path) -> str:
    return str(Path(factors).expanduser().resolve()) if Path(factors).suffix else str(factors)


# --- the file ------------------------------------------------------------------------------------------------------


def _read(path: Path, resident: bool | None) -> dict[str, np.ndarray]:
    """All arrays of the file. A large .npy stays where it is; nothing in a file is ever run."""
    if not path.is_file():
        raise UserError(f"data '{path}' is not there; give an .npy or .npz file")
    try:
        if path.suffix.lower() == ".npy":
            large = resident is False or (resident is None and path.stat().st_size > memory_limit())
            return {"images": open_memmap(path) if large else np.load(path, allow_pickle=False)}
        with open(path, "rb") as file, np.load(file, allow_pickle=False) as stored:
            return {name: array for name in stored if (array := _member(stored, name)) is not None}
    except Exception as error:  # of a damaged file nearly anything
        words = " ".join(str(error).split())
        known = {"Object arrays": "it holds Python objects, not arrays", "pickled": "it holds no array"}
        why = next((said for sign, said in known.items() if sign in words), words)
        raise UserError(f"data '{path}' cannot be read: {why}") from error


def _member(stored: Any, name: str) -> np.ndarray | None:
    """An array of an .npz; None if it is made of Python objects, as some published files' descriptions are."""
    try:
        return stored[name]
    except ValueError:
        return None


def _pick(arrays: Mapping[str, np.ndarray], path: Path) -> tuple[np.ndarray, str]:
    """The images: by their usual names, else the one array that can be images."""
    able = [name for name, array in arrays.items() if array.ndim in (3, 4)]
    for name in _IMAGES:
        if name in able:
            return arrays[name], name
    if len(able) == 1:
        return arrays[able[0]], able[0]
    shapes = ", ".join(f"{name} {list(array.shape)}" for name, array in arrays.items()) or "nothing"
    raise UserError(f"data '{path}' has no array called images that has 3 or 4 dimensions; it holds {shapes}")


def _digest(path: Path) -> str:
    """Of all the bytes of a file, or of pieces all over it where that would take long."""
    digest, size = hashlib.blake2b(digest_size=6), path.stat().st_size
    digest.update(str(size).encode())
    with open(path, "rb") as file:
        if size <= _WHOLE:
            digest.update(file.read())
        else:
            for start in np.linspace(0, size - _BLOCK, _BLOCKS).astype(np.int64):
                file.seek(int(start), os.SEEK_SET)
                digest.update(file.read(_BLOCK))
    return digest.hexdigest()


def _factors(
    arrays: Mapping[str, np.ndarray],
    images: str,
    asked: str | Path | None,
    columns: Sequence[str] | None,
    kinds: Mapping[str, str] | None,
    count: int,
    path: Path,
) -> tuple[FactorTable, dict[str, str], tuple[str, ...]]:
    """The factors, the columns that were none, and the arrays they came from."""
    used: tuple[str, ...] = ()
    if asked is not None and Path(asked).suffix:
        frame = read_table(asked)
        found = {name: frame[name] for name in frame}
        if len(frame) != count:
            raise UserError(f"factors '{asked}' has {len(frame)} rows for {count} images; give one for each, in order")
    else:
        if asked is not None:
            check_choice("factors array", str(asked), [n for n in arrays if n != images], context=f"data '{path}'")
        key = asked or next((n for n in _FACTORS if n in arrays and n != images and len(arrays[n]) == count), None)
        if key is None:
            return no_factors(count), {}, ()
        found, used = _as_columns(arrays, str(key), count)
    for name in columns or ():
        check_choice("column", name, found, context="columns")
    chosen = {name: found[name] for name in columns} if columns else found
    table, left_out = factor_table(chosen, kinds, keep=bool(columns))
    return table, left_out, used


def _as_columns(arrays: Mapping[str, np.ndarray], key: str, count: int) -> tuple[dict[str, Any], tuple[str, ...]]:
    values = arrays[key]
    values = values[:, None] if values.ndim == 1 else values
    if values.ndim != 2 or len(values) != count:
        raise UserError(f"factors array '{key}' has shape {list(arrays[key].shape)}; give one row for each of {count}")
    named = next((n for n in _NAMES if n in arrays and arrays[n].shape == (values.shape[1],)), None)
    if named:
        names = [str(name) for name in arrays[named]]
    else:
        names = [key] if values.shape[1] == 1 else [f"{key}{k}" for k in range(values.shape[1])]
    return dict(zip(names, values.T)), (key, named) if named else (key,)


# --- the pixels ----------------------------------------------------------------------------------------------------


def as_pixels(
    images: np.ndarray, what: str, layout: str | None = None, preprocessing: Preprocessing = AS_IT_IS
) -> tuple[np.ndarray, tuple[str, ...]]:
    """Images of any layout and type as [N, C, H, W] in bytes, or floats in 0..1, and what had to be done."""
    if layout is not None:
        check_choice("layout", layout, LAYOUTS)
    if images.ndim not in (3, 4) or not images.size:
        raise UserError(f"{what}: images have shape {list(images.shape)}; give [N, C, H, W], [N, H, W, C] or [N, H, W]")
    first = channels_first(images, what, layout)
    pixels, notes = _levels(first, what)
    if len(pixels) < 2:
        raise UserError(f"{what} has one image only; give at least two")
    as_they_are = not preprocessing.size and preprocessing.channels == "auto" and pixels.shape[1] != 4
    return (pixels if as_they_are else _shaped(pixels, preprocessing, what)), notes


def channels_first(images: np.ndarray, what: str, layout: str | None) -> np.ndarray:
    if images.ndim == 3:
        return images[:, None]
    ahead, behind = images.shape[1] in (1, 3, 4), images.shape[3] in (1, 3, 4)
    if layout is None and ahead and behind:
        raise UserError(f"{what}: images of shape {list(images.shape)} may be NCHW or NHWC; say which with layout=")
    last = behind if layout is None else layout == "NHWC"
    return images.transpose(0, 3, 1, 2) if last else images


def _levels(images: np.ndarray, what: str) -> tuple[np.ndarray, tuple[str, ...]]:
    """Bytes, or float32 in 0..1."""
    kind = images.dtype.kind
    if kind == "b":
        return images.astype(np.uint8) * np.uint8(255), ("true is white",)
    if kind in "ui":
        return _bytes(images, what)
    if kind != "f":
        raise UserError(f"{what}: images hold {images.dtype}; give bytes, or floats in 0..1")
    pixels = images.astype(np.float32)
    if not np.isfinite(pixels).all():
        raise UserError(f"{what}: images hold a value that is not finite; leave such images out")
    low, high = float(pixels.min()), float(pixels.max())
    if low < 0.0 or high > 1.0:
        raise UserError(f"{what}: images hold floats from {low:g} to {high:g}; give bytes, or floats in 0..1")
    levels = np.round(pixels * 255.0)
    exact = bool((levels / np.float32(255.0) == pixels).all())  # bytes that somebody divided: a quarter of the memory
    return (levels.astype(np.uint8), ()) if exact else (pixels, ())


def _bytes(images: np.ndarray, what: str) -> tuple[np.ndarray, tuple[str, ...]]:
    some = images[:: max(1, len(images) // 1000)]
    if some.max() <= 1 and images.max() <= 1 and images.min() >= 0:
        return images.astype(np.uint8) * np.uint8(255), ("pixels are 0 and 1: 1 is white",)
    if images.dtype == np.uint8:
        return images, ()
    low, high = int(images.min()), int(images.max())
    if low < 0 or high > 65535:
        raise UserError(f"{what}: images hold numbers from {low} to {high}; give 0..255, or floats in 0..1")
    if high <= 255:
        return images.astype(np.uint8), ()
    return (images / 257.0).round().astype(np.uint8), ("16 bits are brought to 8: 65535 is white",)


def _shaped(pixels: np.ndarray, preprocessing: Preprocessing, what: str) -> np.ndarray:
    """Every image through the same preparation as a picture file."""
    if pixels.shape[1] not in (1, 3, 4):
        raise UserError(f"{what}: images have {pixels.shape[1]} channels; with size= they may have 1, 3 or 4")
    levels = pixels if pixels.dtype == np.uint8 else (pixels * 255.0).round().astype(np.uint8)
    if preprocessing.channels == "auto":
        preprocessing = preprocessing._replace(channels="gray" if pixels.shape[1] == 1 else "rgb")
    return np.stack([preprocess_image(as_image(row), preprocessing) for row in levels])


def as_image(pixels_CHW: np.ndarray) -> Image.Image:
    last = np.ascontiguousarray(pixels_CHW.transpose(1, 2, 0))
    return Image.fromarray(last[..., 0] if last.shape[2] == 1 else last)
