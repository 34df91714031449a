"""Somebody else's data set as ours: a PyTorch `Dataset`, a Hugging Face one, or any sequence of such items.

An item is an image, a tuple of an image and labels, or a dictionary with an image in it. Everything is read once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from PIL import Image

from unweave.data.storage.progress import progress_task
from unweave.data.user.array_file import ArrayInfo, as_pixels, channels_first
from unweave.data.user.arrays import Arrays
from unweave.data.user.factor_table import factor_table
from unweave.data.user.image_io import Preprocessing, preprocess_image
from unweave.errors import UserError, check_choice, check_integer


def items(
    source: Any,
    *,
    image: str | None = None,
    names: Sequence[str] | None = None,
    kinds: Mapping[str, str] | None = None,
    size: int | None = None,
    fit: str = "crop",
    channels: str = "auto",
    background: str = "white",
    resident: bool | None = None,
) -> Arrays:
    """Every item of a map-style data set. Its transforms run once, so a random one is frozen as first drawn.

    `image` is the entry of a dictionary that is the image; `names` are those of the labels in a tuple.
    """
    preprocessing = Preprocessing(
        0 if size is None else check_integer("size", size, 8, 512), fit, channels, background
    ).checked()
    count, what = _length(source), type(source).__name__
    pictures: list[np.ndarray] = []
    labels: list[dict[str, Any]] = []
    with progress_task("reading items", count, " items") as move:
        for number in range(count):
            picture, found = _parts(source[number], image, names, number)
            pictures.append(_pixels(picture, preprocessing, number, pictures[0].shape if pictures else None))
            labels.append(found)
            move(number + 1)
    pixels, notes = as_pixels(
        np.stack(pictures), what, "NCHW", preprocessing if preprocessing.channels == "gray" else Preprocessing(0)
    )
    table, left_out = factor_table(_columns(labels, source), kinds)
    data = Arrays(pixels, table, resident=resident, copy=False)
    data.source_info = ArrayInfo(None, f"{what} of {count} items", notes, left_out)
    return data


def is_items(what: Any) -> bool:
    """Whether this has items that can be asked for by number, or is something near enough to say what is wrong."""
    near = isinstance(what, torch.utils.data.IterableDataset | torch.utils.data.DataLoader | Mapping)
    return near or (hasattr(what, "__getitem__") and hasattr(what, "__len__") and not isinstance(what, str | bytes))


def _length(source: Any) -> int:
    if isinstance(source, torch.utils.data.DataLoader):
        raise UserError(
            "data is a DataLoader, whose batches are drawn elsewhere; give its data set: data=loader.dataset"
        )
    if isinstance(source, Mapping):
        parts = ", ".join(f"data[{name!r}]" for name in source)
        raise UserError(f"data holds several sets; give one of them: {parts}")
    if isinstance(source, torch.utils.data.IterableDataset) or not hasattr(source, "__len__"):
        raise UserError("data cannot be asked for its length or for an item by number; give a map-style data set")
    if len(source) < 2:
        raise UserError(f"data has {len(source)} items; give at least two")
    return len(source)


# --- one item ------------------------------------------------------------------------------------------------------


def _parts(item: Any, image: str | None, names: Sequence[str] | None, number: int) -> tuple[Any, dict[str, Any]]:
    """The image of an item, and its labels by name."""
    if isinstance(item, Mapping):
        key = image or next((str(name) for name, value in item.items() if _is_image(value)), None)
        if key is None:
            raise UserError(f"item {number} has no image; it holds {', '.join(map(str, item))}")
        check_choice("image", key, item, context=f"item {number}")
        return item[key], {n: v for name, value in item.items() if name != key for n, v in _scalars(str(name), value)}
    if isinstance(item, tuple | list):
        given = list(names or ["label"] if len(item) == 2 else names or [f"label{k}" for k in range(len(item) - 1)])
        if len(given) != len(item) - 1:
            raise UserError(f"names has {len(given)} entries for {len(item) - 1} labels; give one for each")
        return item[0], {n: v for name, value in zip(given, item[1:]) for n, v in _scalars(name, value)}
    return item, {}


def _is_image(value: Any) -> bool:
    return isinstance(value, Image.Image) or getattr(value, "ndim", 0) in (2, 3)


def _scalars(name: str, value: Any) -> list[tuple[str, Any]]:
    """A label that is a number, a text or nothing; several numbers in a row are as many labels."""
    if value is None or isinstance(value, str | bool | int | float | np.generic):
        return [(name, value)]
    values = np.asarray(value) if isinstance(value, list | tuple | np.ndarray | torch.Tensor) else np.empty((0, 0))
    if values.ndim == 0:
        return [(name, values.item())]
    if values.ndim == 1 and values.dtype.kind in "biuf":
        return [(f"{name}{k}", number) for k, number in enumerate(values.tolist())]
    return []  # boxes, masks, texts of several parts: nothing that a factor could be


def _pixels(picture: Any, preprocessing: Preprocessing, number: int, before: tuple[int, ...] | None) -> np.ndarray:
    """One image [C, H, W]."""
    what = f"item {number}"
    if isinstance(picture, Image.Image):
        gray = preprocessing.channels == "gray" or (
            preprocessing.channels == "auto" and picture.mode in ("1", "L", "I;16", "LA")
        )
        pixels = preprocess_image(picture, preprocessing._replace(channels="gray" if gray else "rgb"))
    else:
        array = picture.detach().cpu().numpy() if isinstance(picture, torch.Tensor) else np.asarray(picture)
        if array.ndim not in (2, 3) or array.dtype.kind not in "buif":
            raise UserError(f"{what} is a {type(picture).__name__} of shape {list(array.shape)}; give images")
        pixels = channels_first(array[None], what, None)[0] if array.ndim == 3 else array[None]
        if preprocessing.size or pixels.shape[0] == 4:
            pixels = as_pixels(np.stack([pixels, pixels]), what, "NCHW", preprocessing)[0][0]
    if before is not None and pixels.shape != before:
        raise UserError(f"{what} is an image of shape {list(pixels.shape)}, the first of {list(before)}; give size=64")
    return pixels


def _columns(labels: list[dict[str, Any]], source: Any) -> dict[str, list[Any]]:
    """Labels by name, as the texts the source has for them."""
    found = {
        name: [label.get(name) for label in labels] for name in dict.fromkeys(n for label in labels for n in label)
    }
    for name, column in found.items():
        feature = (getattr(source, "features", None) or {}).get(name)
        texts = getattr(feature, "names", None) or (getattr(source, "classes", None) if name == "label" else None)
        whole = all(value is None or isinstance(value, int) for value in column)
        if isinstance(texts, list) and whole and all(value is None or 0 <= value < len(texts) for value in column):
            found[name] = [None if value is None else str(texts[value]) for value in column]
    return found
