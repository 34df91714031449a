"""A data set of arrays: your own images, with or without known factors.

Shape letters: N observations, B batch, K factors, C channels, H height, W width.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from unweave.data.dataset import Dataset
from unweave.data.storage.memmap import memory_limit
from unweave.data.storage.readahead import take_rows
from unweave.data.user.factor_table import FactorTable, factor_table, no_factors
from unweave.errors import UserError


class Arrays(Dataset):
    """Images [N, C, H, W], floats as they are or bytes divided by 255; optionally factors [N, K] of any values.

    Nothing says that every combination of factors is there, so this is no grid. Bytes stay bytes until a batch is
    drawn. `resident=False` keeps the images on the host when the set moves to a device; None does so for sets
    larger than half of its memory, of which then as many as fill that half (`room`) lie there while it trains.
    """

    grid = False

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
        self.shape = (pixels.shape[1], pixels.shape[2], pixels.shape[3])
        self.table = _table(factors, names, self.size)
        self.factor_names, self.factor_values = self.table.names, self.table.values
        self.factor_sizes, self.factor_spans = tuple(map(len, self.factor_values)), self.table.spans
        self.resident = pixels.nbytes <= memory_limit() if resident is None else resident
        self.device_cache_limit = memory_limit() if resident is None else 0
        self.pixels: Tensor
        self.classes: Tensor
        self.numbers: Tensor
        if self.resident:
            self.register_buffer("pixels", pixels, persistent=False)
        else:
            self.pixels = pixels
        self.register_buffer("classes", torch.from_numpy(self.table.classes_NK), persistent=False)
        self.register_buffer("numbers", torch.from_numpy(self.table.numbers_NK).float(), persistent=False)

    @property
    def factor_types(self) -> tuple[str, ...]:
        return self.table.factor_types

    def rows(self, index_B: Tensor) -> Tensor:
        """Images as they are stored."""
        if self.resident:
            return self.pixels.index_select(0, index_B.flatten()).unflatten(0, index_B.shape)
        rows = take_rows(self.pixels, index_B.flatten().cpu())
        return rows.to(index_B.device).unflatten(0, index_B.shape)

    def images(self, index_B: Tensor) -> Tensor:
        rows = self.rows(index_B)
        return rows / 255.0 if rows.dtype == torch.uint8 else rows

    def factors(self, index_B: Tensor) -> Tensor:
        return self.classes[index_B]

    def values(self, index_B: Tensor) -> Tensor:
        return self.numbers[index_B]


def _pixels(images: np.ndarray | Tensor, copy: bool) -> Tensor:
    """Bytes as they are, else float32; copied, for the data must not change when the caller's array does."""
    given = images.detach() if isinstance(images, Tensor) else torch.from_numpy(np.asarray(images))
    if given.ndim != 4 or not given.numel():
        raise UserError(f"images has shape {tuple(given.shape)}; give [N, C, H, W] with at least one image")
    given = given.clone() if copy else given
    if given.dtype == torch.uint8:
        return given
    pixels = given.float()
    if not pixels.isfinite().all():
        raise UserError("images holds a value that is not finite; leave such observations out")
    return pixels


def _table(factors: np.ndarray | FactorTable | None, names: Sequence[str] | None, count: int) -> FactorTable:
    if factors is None:
        return no_factors(count)
    if isinstance(factors, FactorTable):
        return factors
    columns = np.asarray(factors)
    if columns.ndim != 2 or len(columns) != count:
        raise UserError(f"factors has shape {columns.shape}; give one row for each of the {count} images")
    return factor_table(dict(zip(_names(names, columns.shape[1]), columns.T)), keep=True)[0]


def _names(names: Sequence[str] | None, count: int) -> tuple[str, ...]:
    if names is not None and len(names) != count:
        raise UserError(f"names has {len(names)} entries for {count} factors; give one for each")
    if names is not None and len(set(names)) < count:
        raise UserError(f"names {tuple(names)} holds one of them twice; give each factor a name of its own")
    return tuple(names) if names is not None else tuple(f"factor{k}" for k in range(count))
