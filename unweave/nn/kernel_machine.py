"""A kernel machine: scores that are linear in features of a Gaussian kernel, made of its values at centres.

Shape letters: B batch, Y classes, Z latents, F centres and as many features.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

_RIDGE = 1e-3  # added to the kernel of a centre with itself: what two centres that nearly coincide differ in is noise


class KernelMachine(nn.Module):
    """Scores of classes. The inner product of two codes' features is about exp(-|z - z'|^2 / (2 width^2)).

    Features are the kernel's values at the centres, whitened (Williams and Seeger 2001): among the functions that
    centres can express the machine is the exact one, so centres should lie where codes do.
    """

    def __init__(self, centres_FZ: Tensor, classes: int, *, width: float) -> None:
        super().__init__()
        self.width = width
        self.centres_FZ: Tensor
        self.whitening_FF: Tensor
        self.register_buffer("centres_FZ", centres_FZ)
        kernel_FF = self.kernel(centres_FZ.double()) + _RIDGE * torch.eye(len(centres_FZ), dtype=torch.float64)
        lower_FF = torch.linalg.cholesky(kernel_FF)
        unit_FF = torch.eye(len(centres_FZ), dtype=torch.float64)
        whitening_FF = torch.linalg.solve_triangular(lower_FF, unit_FF, upper=False).T
        self.register_buffer("whitening_FF", whitening_FF.to(centres_FZ.dtype).contiguous())
        self.scores = nn.Linear(len(centres_FZ), classes)
        nn.init.zeros_(self.scores.weight)
        nn.init.zeros_(self.scores.bias)

    def kernel(self, z_BZ: Tensor) -> Tensor:
        """Its values at the centres [B, F]."""
        centres_FZ = self.centres_FZ.to(z_BZ.dtype)
        square_BF = z_BZ.square().sum(1)[:, None] + centres_FZ.square().sum(1) - 2.0 * z_BZ @ centres_FZ.T
        return (-square_BF.clamp_min(0.0) / (2.0 * self.width**2)).exp()

    def features(self, z_BZ: Tensor) -> Tensor:
        """[B, F], of length about one near the centres."""
        with torch.autocast(z_BZ.device.type, enabled=False):  # of a difference of squares, three digits are too few
            return self.kernel(z_BZ) @ self.whitening_FF

    def forward(self, z_BZ: Tensor) -> Tensor:
        return self.scores(self.features(z_BZ))
