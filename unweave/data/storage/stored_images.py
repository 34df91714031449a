"""A data set of stored images: bytes or packed bits, selected by index.

Shape letters: N observations, B batch, K factors, C channels, H height, W width.
"""

import math

import torch
from torch import Tensor
from torch.nn import Buffer

from unweave.data.dataset import Dataset, keep_on_host_if_too_large
from unweave.data.storage.array_store import StoredArrays
from unweave.data.storage.digest import Hash, hash_tensor, mapped_file
from unweave.data.storage.memmap import select_rows
from unweave.data.storage.memory_limit import memory_limit


class StoredImages(Dataset):
    """Images of a published file.

    The arrays are `pixels` [N, H, W] or [N, H, W, C] in 0..255, or `bits` [N, H, W / 8] with eight black or white
    pixels per byte, and `classes` [N, K] unless the images are a grid of their factors. On the CPU they are the
    memory-mapped file. Images larger than `memory_limit()`, or too large for a device, are not resident: they stay on
    the host, and as many as fit are cached on the device during training.
    """

    def __init__(self, name: str, stored: StoredArrays, options: dict[str, object]) -> None:
        super().__init__()
        self.name, self.options = name, options
        self.factor_names, self.factor_values = stored.factors
        self.factor_sizes = tuple(map(len, self.factor_values))
        self.packed, self.grid = "bits" in stored.arrays, "classes" not in stored.arrays
        array = stored.arrays["bits" if self.packed else "pixels"]
        pixels, self.pixels_file = torch.from_numpy(array), mapped_file(array)
        self.size, height, width = pixels.shape[:3]
        self.shape = (pixels.shape[3] if pixels.ndim == 4 else 1, height, width * 8 if self.packed else width)
        if self.grid and math.prod(self.factor_sizes) != self.size:
            raise ValueError(f"{self.size} images are not a grid of factors of sizes {self.factor_sizes}")
        self.device_cache_limit = None
        self.resident = pixels.nbytes <= memory_limit()
        self.pixels = Buffer(pixels, persistent=False) if self.resident else pixels
        if self.packed:
            self.shift_8 = Buffer(torch.arange(7, -1, -1, dtype=torch.uint8), persistent=False)
        if not self.grid:
            self.classes = Buffer(torch.from_numpy(stored.arrays["classes"]).long(), persistent=False)

    def hash_images(self, sampled: bool | None) -> Hash:
        return hash_tensor(self.pixels, file=self.pixels_file, sampled=sampled, name=self.name)

    def fit_to(self, device: torch.device) -> None:
        keep_on_host_if_too_large(self, device)

    def raw_images(self, index_B: Tensor) -> Tensor:
        rows = self._select(index_B)
        return rows * 255 if self.packed else rows

    def images(self, index_B: Tensor) -> Tensor:
        x = self._select(index_B).float()
        return x if self.packed else x / 255.0

    def _select(self, index_B: Tensor) -> Tensor:
        x = select_rows(self.pixels, index_B.flatten(), resident=self.resident)
        if self.packed:
            x = ((x[..., None] >> self.shift_8) & 1).flatten(-2)
        x = x.movedim(-1, -3) if x.ndim == 4 else x[:, None]
        return x.unflatten(0, index_B.shape)

    def factors(self, index_B: Tensor) -> Tensor:
        return super().factors(index_B) if self.grid else self.classes[index_B]
