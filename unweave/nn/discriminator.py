"""Discriminators: networks that distinguish two distributions of codes. Shape letters: B batch, Z latents."""

from itertools import pairwise
from typing import NamedTuple

import torch
from torch import Tensor, nn

from unweave.errors import check_integer
from unweave.nn.networks import init_weights
from unweave.nn.precision import at_least_float32
from unweave.ops.density_ratio import GENERATOR_LOSSES, discriminator_loss


class Discriminator(nn.Module):
    """Kim & Mnih 2018: six hidden layers of 1000 units, leaky ReLU 0.2, two logits."""

    def __init__(self, latents: int, *, width: int = 1000, depth: int = 6) -> None:
        super().__init__()
        check_integer("discriminator_width", width, 1)
        check_integer("discriminator_depth", depth, 1, 100)
        sizes = (latents, *[width] * depth)
        layers: list[nn.Module] = []
        for before, after in pairwise(sizes):
            layers += [nn.Linear(before, after), nn.LeakyReLU(0.2)]
        self.layers = nn.Sequential(*layers, nn.Linear(width, 2))
        init_weights(self)

    def forward(self, z_BZ: Tensor) -> Tensor:
        """Return the logits [B, 2] of the first distribution (the codes) and of the second one."""
        return at_least_float32(self.layers(z_BZ))


def log_ratio(discriminator: nn.Module, z_BZ: Tensor) -> Tensor:
    """Return the discriminator's estimate of log q(z) / p(z) [B], q the first of its two distributions."""
    logits_B2 = discriminator(z_BZ)
    return logits_B2[:, 0] - logits_B2[:, 1]


class AdversarialLosses(NamedTuple):
    """Losses of a discriminator of codes and prior samples, and of the encoder; means over the batch."""

    discriminator: Tensor
    generator: Tensor  # the encoder's loss
    accuracy: Tensor  # of the discriminator


def adversarial_losses(
    discriminator: nn.Module, code_BZ: Tensor, prior_BZ: Tensor, generator: str = "non_saturating"
) -> AdversarialLosses:
    """Return both losses from one pass; each player's gradient is that of its own parameters only."""
    code_B, prior_B = log_ratio(discriminator, torch.cat([code_BZ, prior_BZ])).chunk(2)
    loss, accuracy = discriminator_loss(code_B, prior_B)
    return AdversarialLosses(loss, GENERATOR_LOSSES[generator](code_B).mean(), accuracy)
