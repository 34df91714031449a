"""Critics: networks that tell two distributions of codes apart."""

from __future__ import annotations

from itertools import pairwise
from typing import NamedTuple

import torch
from torch import Tensor, nn

from unweave.errors import UserError
from unweave.nn.networks import init_weights
from unweave.nn.precision import at_least_single
from unweave.ops.density_ratio import GENERATOR_LOSSES, discriminator_loss


class Discriminator(nn.Module):
    """Kim & Mnih 2018: six hidden layers of 1000 units, leaky ReLU 0.2, two logits."""

    def __init__(self, latents: int, *, width: int = 1000, depth: int = 6) -> None:
        if width < 1:
            raise UserError(f"critic_width {width} is no width of a layer; give at least 1")
        if depth < 1:
            raise UserError(f"critic_depth {depth} is no number of layers; give at least 1")
        super().__init__()
        sizes = (latents, *[width] * depth)
        layers: list[nn.Module] = []
        for before, after in pairwise(sizes):
            layers += [nn.Linear(before, after), nn.LeakyReLU(0.2)]
        self.layers = nn.Sequential(*layers, nn.Linear(width, 2))
        init_weights(self)

    def forward(self, z_BZ: Tensor) -> Tensor:
        """Logits [B, 2]: from the joint distribution, from the product of marginals."""
        return at_least_single(self.layers(z_BZ))


class AdversarialLosses(NamedTuple):
    """What a critic of codes and an encoder that wants them taken for the prior have to say, means over the batch."""

    discriminator: Tensor  # the critic's loss
    generator: Tensor  # the encoder's loss
    accuracy: Tensor  # the share of codes and draws the critic sorts rightly


def adversarial_losses(
    discriminator: nn.Module, code_BZ: Tensor, prior_BZ: Tensor, generator: str = "non_saturating"
) -> AdversarialLosses:
    """Both losses from one pass; each player's gradient is taken of its own parameters only."""
    logits_B2 = discriminator(torch.cat([code_BZ, prior_BZ]))
    code_B, prior_B = (logits_B2[:, 0] - logits_B2[:, 1]).chunk(2)  # log q(z) / p(z)
    loss, accuracy = discriminator_loss(code_B, prior_B)
    return AdversarialLosses(loss, GENERATOR_LOSSES[generator](code_B).mean(), accuracy)
