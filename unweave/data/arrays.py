"""A data set of arrays in memory: your own images, with or without known factors.

Shape letters: N observations, B batch, K factors, C channels, H height, W width.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from unweave.contract import UserError
from unweave.data.dataset import Dataset


class Arrays(Dataset):
    """Images [N, C, H, W], floats as they are or bytes divided by 255; optionally factors [N, K] of any values.

    Nothing says that every combination of factors is there, so this is no grid and gives no pairs.
    """

    grid = False

    def __init__(
        self, images: np.ndarray | Tensor, factors: np.ndarray | None = None, *, names: Sequence[str] | None = None
    ) -> None:
        super().__init__()
        pixels = _pixels(images)
        self.name, self.size, self.options = "arrays", len(pixels), {}
        self.shape = (pixels.shape[1], pixels.shape[2], pixels.shape[3])
        table = np.empty((self.size, 0)) if factors is None else np.asarray(factors)
        if table.ndim != 2 or len(table) != self.size:
            raise UserError(f"factors has shape {table.shape}; give one row for each of the {self.size} images")
        found = [np.unique(column, return_inverse=True) for column in table.T]
        self.factor_values = tuple(tuple(values.tolist()) for values, _ in found)
        self.factor_sizes = tuple(map(len, self.factor_values))
        self.factor_names = _names(names, len(found))
        classes = np.stack([c for _, c in found], axis=1) if found else np.empty((self.size, 0))
        self.pixels: Tensor
        self.classes: Tensor
        self.register_buffer("pixels", pixels, persistent=False)
        self.register_buffer("classes", torch.tensor(classes, dtype=torch.int64), persistent=False)

    def images(self, index_B: Tensor) -> Tensor:
        return self.pixels[index_B]

    def factors(self, index_B: Tensor) -> Tensor:
        return self.classes[index_B]


def _pixels(images: np.ndarray | Tensor) -> Tensor:
    """A float32 copy: the data must not change when the caller's array does."""
    given = images.detach().clone() if isinstance(images, Tensor) else torch.tensor(np.asarray(images))
    if given.ndim != 4 or not given.numel():
        raise UserError(f"images has shape {tuple(given.shape)}; give [N, C, H, W] with at least one image")
    pixels = given.float() / 255.0 if given.dtype == torch.uint8 else given.float()
    if not pixels.isfinite().all():
        raise UserError("images holds a value that is not finite; leave such observations out")
    return pixels


def _names(names: Sequence[str] | None, count: int) -> tuple[str, ...]:
    if names is not None and len(names) != count:
        raise UserError(f"names has {len(names)} entries for {count} factors; give one for each")
    return tuple(names) if names is not None else tuple(f"factor{k}" for k in range(count))
