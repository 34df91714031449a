"""A data set of arrays: images, with or without known factors.

Shape letters: N observations, B batch, K factors, C channels, H height, W width.
"""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Self

import numpy as np
import torch
from torch import Tensor
from torch.nn import Buffer

from unweave.data.dataset import Dataset, keep_on_host_if_too_large
from unweave.data.storage.digest import Hash, hash_tensor, mapped_file
from unweave.data.storage.memmap import select_rows
from unweave.data.storage.memory_limit import memory_limit
from unweave.data.user.factor_table import FactorTable, factor_table, no_factors
from unweave.errors import UserError, invalid


class Arrays(Dataset):
    """Images [N, C, H, W], floats or bytes (divided by 255 in a batch), and optionally factors [N, K] of any values.

    `resident=False` keeps the images on the host when the data set moves to a device. None does so if they are larger
    than `memory_limit()`, or too large for the device; then as many as fit are cached on it during training.
    """

    grid = False  # combinations of factors may be missing

    def __init__(
        self,
        images: np.ndarray | Tensor,
        factors: np.ndarray | FactorTable | None = None,
        *,
        names: Sequence[str] | None = None,
        resident: bool | None = None,
        copy: bool = True,
    ) -> None:
        super().__init__()
        pixels = _pixels(images, copy)
        self.name, self.size, self.options = "arrays", len(pixels), {}
        self.shape = tuple(pixels.shape[1:])  # type: ignore[assignment]
        self.table = _table(factors, names, self.size)
        self.factor_names, self.factor_values = self.table.names, self.table.values
        self.factor_sizes, self.factor_spans = tuple(map(len, self.factor_values)), self.table.spans
        self.resident = pixels.nbytes <= memory_limit() if resident is None else resident
        self.device_cache_limit = None if resident is None else 0
        self.pixels = Buffer(pixels, persistent=False) if self.resident else pixels
        is_view = isinstance(images, np.ndarray) and pixels.data_ptr() == images.ctypes.data  # not a converted copy
        self.pixels_file = mapped_file(np.asanyarray(images)) if is_view else None
        self.classes = Buffer(torch.from_numpy(self.table.classes_NK), persistent=False)
        self.numbers = Buffer(torch.from_numpy(self.table.numbers_NK), persistent=False)

    @property
    def factor_types(self) -> tuple[str, ...]:
        return self.table.factor_types

    def hash_images(self, sampled: bool | None) -> Hash:
        return hash_tensor(self.pixels, file=self.pixels_file, sampled=sampled, name=self.name)

    def fit_to(self, device: torch.device) -> None:
        keep_on_host_if_too_large(self, device)

    def raw_images(self, index_B: Tensor) -> Tensor:
        return select_rows(self.pixels, index_B, resident=self.resident)

    def images(self, index_B: Tensor) -> Tensor:
        x = self.raw_images(index_B)
        return x / 255.0 if x.dtype == torch.uint8 else x

    def factors(self, index_B: Tensor) -> Tensor:
        return self.classes[index_B]

    def values(self, index_B: Tensor) -> Tensor:
        return self.numbers[index_B]

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> Self:
        try:
            return super()._apply(fn, recurse)
        except TypeError:  # the device has no float64, such as mps
            self.numbers = Buffer(self.numbers.float(), persistent=False)
            return super()._apply(fn, recurse)

    def exact_values(self, index_B: Tensor) -> Tensor:
        return torch.from_numpy(self.table.numbers_NK)[index_B.cpu()]


def _pixels(images: np.ndarray | Tensor, copy: bool) -> Tensor:
    """Return bytes unchanged and other types as float32; copied, so that the caller may change its array."""
    given = images.detach() if isinstance(images, Tensor) else torch.from_numpy(np.asarray(images))
    if given.ndim != 4 or not given.numel():
        raise invalid("images", list(given.shape), "of shape [N, C, H, W] with at least one image")
    given = given.clone() if copy else given
    if given.dtype == torch.uint8:
        return given
    pixels = given.float()
    if not pixels.isfinite().all():
        raise invalid("images", "nan or infinity", "finite")
    return pixels


def _table(factors: np.ndarray | FactorTable | None, names: Sequence[str] | None, count: int) -> FactorTable:
    if factors is None:
        return no_factors(count)
    if isinstance(factors, FactorTable):
        return factors
    columns = np.asarray(factors)
    if columns.ndim != 2 or len(columns) != count:
        raise invalid("factors", list(columns.shape), f"one row for each of the {count} images")
    return factor_table(dict(zip(_names(names, columns.shape[1]), columns.T)), keep=True)[0]


def _names(names: Sequence[str] | None, count: int) -> tuple[str, ...]:
    if names is None:
        return tuple(f"factor{k}" for k in range(count))
    if len(names) != count or len(set(names)) < count:
        raise invalid("names", list(names), f"{count} different names, one for each factor")
    return tuple(names)


def check_fingerprint(images: Path, factors: Path, stored: str | None, current: str, hint: str = "") -> None:
    """Raise unless the content of the data has the fingerprint that a run has stored."""
    if stored in (None, current):
        return
    then, now = str(stored).split("-"), current.split("-")
    part, path = ("data", images) if then[:2] != now[:2] else ("factors", factors)
    counts = f" ({then[0]} images then, {now[0]} now)" if then[0] != now[0] else ""
    rules = " or their rows name images in other folders" if part == "factors" else ""
    message = f"the {part} in '{path}' have changed since the run was trained{counts}{rules}; restore them{hint}"
    raise UserError(message, argument=part, value=str(path), accepted="the data of the run")
