"""The variational autoencoder every VAE-type method calls: encode, sample, decode, score.

Shape letters: B batch, Z latents, C channels, H height, W width.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import torch.nn.functional as F
from torch import Tensor, nn

from unweave.contract import Representation
from unweave.errors import check_choice
from unweave.nn.networks import build_networks
from unweave.nn.precision import at_least_single
from unweave.ops.divergence import kl_standard, reparametrize

LIKELIHOODS = ("bernoulli", "gaussian", "laplace")


class Pass(NamedTuple):
    """One pass through the autoencoder, unreduced."""

    nll_B: Tensor  # -log p(x|z) in nats, summed over pixels
    kl_BZ: Tensor  # KL(q(z_j|x) || N(0, 1))
    z_BZ: Tensor
    mean_BZ: Tensor
    logvar_BZ: Tensor


def negative_log_likelihood(x: Tensor, output: Tensor, likelihood: str) -> Tensor:
    """-log p(x|output) [B] in nats: Bernoulli of logits, or unit-scale Gaussian or Laplace around the output."""
    output = at_least_single(output)
    if likelihood == "bernoulli":
        pixels = F.binary_cross_entropy_with_logits(output, x, reduction="none")
    elif likelihood == "gaussian":
        pixels = 0.5 * (x - output).square() + 0.5 * math.log(2.0 * math.pi)
    else:
        pixels = (x - output).abs() + math.log(2.0)
    return pixels.flatten(1).sum(1)


class AutoEncoder(nn.Module):
    """Gaussian encoder q(z|x), decoder p(x|z)."""

    def __init__(self, shape: tuple[int, int, int], latents: int, net: str, likelihood: str) -> None:
        super().__init__()
        check_choice("likelihood", likelihood, LIKELIHOODS)
        self.likelihood = likelihood
        self.latents = latents
        self.encoder, self.decoder = build_networks(net, shape, latents)

    def posterior(self, x_BCHW: Tensor) -> tuple[Tensor, Tensor]:
        """Mean and log-variance [B, Z] of q(z|x)."""
        mean_BZ, logvar_BZ = at_least_single(self.encoder(x_BCHW)).chunk(2, dim=1)
        return mean_BZ, logvar_BZ

    def nll(self, x_BCHW: Tensor, z_BZ: Tensor) -> Tensor:
        """-log p(x|z) [B]."""
        return negative_log_likelihood(x_BCHW, self.decoder(z_BZ), self.likelihood)

    def forward(self, x_BCHW: Tensor, eps_BZ: Tensor) -> Pass:
        mean_BZ, logvar_BZ = self.posterior(x_BCHW)
        z_BZ = reparametrize(mean_BZ, logvar_BZ, eps_BZ)
        return Pass(self.nll(x_BCHW, z_BZ), kl_standard(mean_BZ, logvar_BZ), z_BZ, mean_BZ, logvar_BZ)

    def decode(self, z_BZ: Tensor) -> Tensor:
        """The mean image of p(x|z)."""
        output = at_least_single(self.decoder(z_BZ))
        return output.sigmoid() if self.likelihood == "bernoulli" else output

    def representation(self) -> Representation:
        return Representation(lambda x: self.posterior(x)[0], self.latents, self.decode, self.posterior)
