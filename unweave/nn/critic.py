"""Critics: networks that tell two distributions of codes apart."""

from __future__ import annotations

from itertools import pairwise

from torch import Tensor, nn

from unweave.nn.networks import glorot
from unweave.nn.precision import at_least_single


class Critic(nn.Module):
    """Kim & Mnih 2018: six hidden layers of 1000 units, leaky ReLU 0.2, two logits."""

    def __init__(self, latents: int, *, width: int = 1000, depth: int = 6) -> None:
        super().__init__()
        sizes = (latents, *[width] * depth)
        layers: list[nn.Module] = []
        for before, after in pairwise(sizes):
            layers += [nn.Linear(before, after), nn.LeakyReLU(0.2)]
        self.layers = nn.Sequential(*layers, nn.Linear(width, 2))
        glorot(self)

    def forward(self, z_BZ: Tensor) -> Tensor:
        """Logits [B, 2]: from the joint distribution, from the product of marginals."""
        return at_least_single(self.layers(z_BZ))
