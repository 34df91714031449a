"""Handwritten digits of 8 x 8 pixels, bundled with scikit-learn: small, real and offline.

Shape letters: N observations, B batch, H height, W width.
"""

from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.nn import Buffer

from unweave.data.dataset import Dataset
from unweave.data.storage.digest import Hash, hash_tensor
from unweave.errors import check_integer


class Digits(Dataset):
    """1797 handwritten digits (test part of the UCI optical recognition set, Alpaydin & Kaynak 1998).

    The digit is the only known factor, so the data are not a grid: there are no pairs, and no scores that need several
    factors. `size` is the side in pixels; sizes other than 8 are interpolated bilinearly.
    """

    factor_names = ("digit",)
    factor_sizes = (10,)
    factor_values = (tuple(map(float, range(10))),)
    grid = False
    renderer_version = 1

    def __init__(self, *, size: int = 8) -> None:
        super().__init__()
        from sklearn.datasets import load_digits  # type: ignore[import-untyped]

        self.side = check_integer("size", size, 8, 128)
        bundled = load_digits()
        pixels_NHW = torch.from_numpy(bundled.images).float() / 16.0
        self.name, self.shape, self.size = "digits", (1, size, size), len(pixels_NHW)
        self.options = {"size": size}
        self.bundled_hash = hash_tensor(pixels_NHW)  # the same on all machines, unlike interpolated pixels
        pixels = pixels_NHW[:, None]
        if size != pixels.shape[-1]:
            pixels = F.interpolate(pixels, size=(size, size), mode="bilinear", align_corners=False)
        self.pixels = Buffer(pixels, persistent=False)
        self.labels_N1 = Buffer(torch.from_numpy(bundled.target).long()[:, None], persistent=False)

    def image_sources(self, sampled: bool | None) -> Sequence[Hash]:
        return (self.bundled_hash,)

    def images(self, index_B: Tensor) -> Tensor:
        return self.pixels[index_B]

    def factors(self, index_B: Tensor) -> Tensor:
        return self.labels_N1[index_B]
