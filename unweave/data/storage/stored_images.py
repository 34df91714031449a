"""A file-based set: bytes, or packed bits, looked up by number.

Shape letters: N observations, B batch, K factors, C channels, H height, W width.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from unweave.data.dataset import Dataset
from unweave.data.storage.array_store import StoredArrays
from unweave.data.storage.memmap import memory_limit
from unweave.data.storage.readahead import take_rows


class StoredImages(Dataset):
    """Pictures of a published file.

    The arrays are `pixels` [N, H, W] or [N, H, W, C] in 0..255, or `bits` [N, H, W / 8] of eight black or white pixels
    each; and `classes` [N, K] unless the pictures are a grid of their factors. On the CPU they are the mapped file
    itself. `.to(device)` takes them along if they fit there; those that do not (`resident` is False) stay on the host,
    and as many of them as have `room` on the device lie there while it trains.
    """

    def __init__(self, name: str, made: StoredArrays, options: dict[str, object]) -> None:
        super().__init__()
        self.name, self.options = name, options
        self.factor_names, self.factor_values = made.factors
        self.factor_sizes = tuple(map(len, self.factor_values))
        self.packed, self.grid = "bits" in made.arrays, "classes" not in made.arrays
        pixels = torch.from_numpy(made.arrays["bits" if self.packed else "pixels"])
        self.size, height, width = pixels.shape[:3]
        self.shape = (pixels.shape[3] if pixels.ndim == 4 else 1, height, width * 8 if self.packed else width)
        if self.grid and math.prod(self.factor_sizes) != self.size:
            raise ValueError(f"{self.size} pictures are no grid of {self.factor_sizes}")
        self.device_cache_limit = memory_limit()
        self.resident = pixels.nbytes <= self.device_cache_limit
        self.pixels: Tensor
        self.classes: Tensor
        self.shift_8: Tensor
        if self.resident:
            self.register_buffer("pixels", pixels, persistent=False)
        else:
            self.pixels = pixels
        if self.packed:
            shift_8 = torch.arange(7, -1, -1, dtype=torch.uint8)
            self.register_buffer("shift_8", shift_8, persistent=False)
        if not self.grid:
            self.register_buffer("classes", torch.from_numpy(made.arrays["classes"]).long(), persistent=False)

    def rows(self, index_B: Tensor) -> Tensor:
        """Images [B, C, H, W] as bytes, 0..255."""
        return self._look_up(index_B) * 255 if self.packed else self._look_up(index_B)

    def images(self, index_B: Tensor) -> Tensor:
        x = self._look_up(index_B).float()
        return x if self.packed else x / 255.0

    def _look_up(self, index_B: Tensor) -> Tensor:
        if self.resident:
            x = self.pixels.index_select(0, index_B.flatten())
        else:
            x = take_rows(self.pixels, index_B.flatten().cpu()).to(index_B.device)
        if self.packed:
            x = ((x[..., None] >> self.shift_8) & 1).flatten(-2)
        x = x.movedim(-1, -3) if x.ndim == 4 else x[:, None]
        return x.unflatten(0, index_B.shape)

    def factors(self, index_B: Tensor) -> Tensor:
        return super().factors(index_B) if self.grid else self.classes[index_B]
