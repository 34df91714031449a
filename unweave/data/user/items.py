"""The data set of another library: a PyTorch `Dataset`, a Hugging Face data set, or any sequence of such items.

An item is an image, a tuple of an image and labels, or a dictionary with an image. Every item is read once.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import date
from decimal import Decimal
from numbers import Integral
from typing import Any

import numpy as np
import torch
from PIL import Image

from unweave.data.dataset import SourceInfo
from unweave.data.storage.progress import progress_task
from unweave.data.user.arrays import Arrays
from unweave.data.user.factor_table import factor_table
from unweave.data.user.item_images import ItemImages
from unweave.data.user.pixels import ArrayOptions
from unweave.errors import check_choice, invalid

_NOT_A_LABEL = object()
_MAP_STYLE = "a map-style data set with at least two items"


def items(
    source: Any,
    *,
    image: str | None = None,
    names: Sequence[str] | None = None,
    factor_types: Mapping[str, str] | None = None,
    size: int | None = None,
    fit: str = "crop",
    channels: str = "auto",
    background: str = "white",
    white: int | None = None,
    alpha: bool = False,
    layout: str | None = None,
    resident: bool | None = None,
) -> Arrays:
    """Read every item of a map-style data set. Transforms run once, so the result of a random one stays the same.

    `image` is the key of the image in dictionaries; `names` are the names of the labels in tuples. PIL images are
    prepared like image files, arrays like the rows of an array; `white`, `alpha` and `layout` are those of arrays.
    """
    options = ArrayOptions(layout, size, fit, channels, background, white, alpha).checked()
    count, context = _length(source), type(source).__name__
    images, labels = ItemImages(count, options), []
    with progress_task("reading items", count, " items") as update:
        for index in range(count):
            picture, found = _split_item(source[index], image, names, f"item {index}")
            images.add(picture)
            labels.append(found)
            update(index + 1)
    pixels = images.finish()
    columns, class_names = _label_columns(labels, source)
    unusable = [name for name, column in columns.items() if any(value is _NOT_A_LABEL for value in column)]
    usable = {name: column for name, column in columns.items() if name not in unusable}
    table, excluded = factor_table(usable, factor_types, names=class_names)
    excluded |= dict.fromkeys(unusable, "not a number, a text or a list of numbers")
    data = Arrays(pixels.images, table, resident=resident, copy=False)
    data.preprocessing = pixels.preprocessing
    data.source_info = SourceInfo(f"{context} of {count} items", notes=pixels.notes, excluded_columns=excluded)
    return data


def is_items(source: Any) -> bool:
    """Return True for objects with items, and for similar ones that `items` rejects with an explanation."""
    similar = isinstance(source, torch.utils.data.IterableDataset | torch.utils.data.DataLoader | Mapping)
    sized = hasattr(source, "__getitem__") and hasattr(source, "__len__")
    return similar or (sized and not isinstance(source, str | bytes))


def _length(source: Any) -> int:
    name = type(source).__name__
    if isinstance(source, torch.utils.data.DataLoader):
        raise invalid("data", name, _MAP_STYLE, hint="pass data=loader.dataset")
    if isinstance(source, Mapping):
        parts = " or ".join(f"data[{name!r}]" for name in source)
        raise invalid("data", name, _MAP_STYLE, hint=f"pass {parts}")
    if isinstance(source, torch.utils.data.IterableDataset) or not hasattr(source, "__len__"):
        raise invalid("data", name, _MAP_STYLE)
    if len(source) < 2:
        raise invalid("data", f"{len(source)} items", _MAP_STYLE)
    return len(source)


def _split_item(item: Any, image: str | None, names: Sequence[str] | None, context: str) -> tuple[Any, dict[str, Any]]:
    """Return the image of an item, and its labels by name."""
    if isinstance(item, Mapping):
        images = [n for n, v in item.items() if isinstance(v, Image.Image) or getattr(v, "ndim", 0) in (2, 3)]
        key = image or next(map(str, images), None)
        if key is None:
            raise invalid("data", ", ".join(map(str, item)), "a dictionary with an image", context=context)
        check_choice("image", key, item, context=context)
        return item[key], {n: v for name, value in item.items() if name != key for n, v in _scalars(str(name), value)}
    if isinstance(item, tuple | list):
        default = ["label"] if len(item) == 2 else [f"label{k}" for k in range(len(item) - 1)]
        given = list(names or default)
        if len(given) != len(item) - 1:
            raise invalid("names", given, f"one name for each of the {len(item) - 1} labels")
        return item[0], {n: v for name, value in zip(given, item[1:]) for n, v in _scalars(name, value)}
    return item, {}


def _scalars(name: str, value: Any) -> list[tuple[str, Any]]:
    """Return the named scalars of a label; a vector of numbers is several labels, other values are no labels."""
    if value is None or isinstance(value, str | bool | int | float | np.generic | Decimal | date):
        return [(name, value)]
    values = np.asarray(value) if isinstance(value, list | tuple | np.ndarray | torch.Tensor) else np.empty((0, 0))
    if values.ndim == 0:
        return [(name, values.item())]
    if values.ndim == 1 and values.dtype.kind in "biuf":
        return [(f"{name}{k}", number) for k, number in enumerate(values.tolist())]
    return [(name, _NOT_A_LABEL)]  # such as bounding boxes and masks


def _label_columns(labels: list[dict[str, Any]], source: Any) -> tuple[dict[str, list[Any]], set[str]]:
    """Return the values of each label, as class names if the source has them, and the labels with class names."""
    names = dict.fromkeys(name for label in labels for name in label)
    columns, named = {name: [label.get(name) for label in labels] for name in names}, set()
    for name, column in columns.items():
        feature = (getattr(source, "features", None) or {}).get(name)
        texts = getattr(feature, "names", None) or (getattr(source, "classes", None) if name == "label" else None)
        known = {value for value in column if isinstance(value, Integral)}
        others = any(value is not None and not isinstance(value, Integral) for value in column)
        if isinstance(texts, list | tuple) and not others and known <= {-1, *range(len(texts))}:
            shown = _different(list(map(str, texts)))
            columns[name] = [None if value is None or value < 0 else shown[value] for value in column]
            named.add(name)
    return columns, named


def _different(names: list[str]) -> list[str]:
    """Return the names of classes with the number of the class after each name that several classes have."""
    counts = Counter(names)
    return [name if counts[name] == 1 else f"{name} ({number})" for number, name in enumerate(names)]
