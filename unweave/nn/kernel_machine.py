"""A kernel machine: scores that are linear in random features of a Gaussian kernel (Rahimi and Recht 2007).

Shape letters: B batch, Y classes, Z latents, F features.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn


class KernelMachine(nn.Module):
    """Scores of classes. The inner product of two codes' features is about exp(-|z - z'|^2 / (2 width^2))."""

    def __init__(self, latents: int, classes: int, *, width: float, features: int = 1000) -> None:
        super().__init__()
        self.width = width
        self.directions_ZF: Tensor
        self.phases_F: Tensor
        self.register_buffer("directions_ZF", torch.randn(latents, features))
        self.register_buffer("phases_F", 2.0 * math.pi * torch.rand(features))
        self.scores = nn.Linear(features, classes)
        nn.init.zeros_(self.scores.weight)
        nn.init.zeros_(self.scores.bias)

    def features(self, z_BZ: Tensor) -> Tensor:
        """[B, F], of length about one."""
        with torch.autocast(z_BZ.device.type, enabled=False):  # of an angle, three digits are too few
            angle_BF = z_BZ @ self.directions_ZF / self.width + self.phases_F
            return math.sqrt(2.0 / angle_BF.shape[1]) * torch.cos(angle_BF)

    def forward(self, z_BZ: Tensor) -> Tensor:
        return self.scores(self.features(z_BZ))
