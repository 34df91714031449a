"""The autoencoder of all VAE methods.

Shape letters: B batch, Z latents, C channels, H height, W width.
"""

from typing import NamedTuple

from torch import Tensor, nn

from unweave.contract import Representation
from unweave.nn.likelihoods import find_likelihood
from unweave.nn.networks import build_networks
from unweave.nn.precision import at_least_float32
from unweave.ops.divergence import kl_standard, reparametrize


class Pass(NamedTuple):
    """One pass through the autoencoder, unreduced."""

    nll_B: Tensor  # -log p(x|z) in nats, summed over pixels
    kl_BZ: Tensor  # KL(q(z_j|x) || N(0, 1))
    z_BZ: Tensor
    mean_BZ: Tensor
    logvar_BZ: Tensor


class AutoEncoder(nn.Module):
    """A Gaussian encoder q(z|x) and a decoder p(x|z)."""

    def __init__(self, shape: tuple[int, int, int], latents: int, net: str, likelihood: str) -> None:
        super().__init__()
        self.likelihood = find_likelihood(likelihood)
        self.latents = latents
        self.encoder, self.decoder = build_networks(net, shape, latents)

    def posterior(self, x_BCHW: Tensor) -> tuple[Tensor, Tensor]:
        """Return mean and log-variance [B, Z] of q(z|x)."""
        mean_BZ, logvar_BZ = at_least_float32(self.encoder(x_BCHW)).chunk(2, dim=1)
        return mean_BZ, logvar_BZ

    def nll(self, x_BCHW: Tensor, z_BZ: Tensor) -> Tensor:
        """Return -log p(x|z) [B]."""
        return self.likelihood.nll(x_BCHW, self.decoder(z_BZ))

    def forward(self, x_BCHW: Tensor, eps_BZ: Tensor) -> Pass:
        mean_BZ, logvar_BZ = self.posterior(x_BCHW)
        z_BZ = reparametrize(mean_BZ, logvar_BZ, eps_BZ)
        return Pass(self.nll(x_BCHW, z_BZ), kl_standard(mean_BZ, logvar_BZ), z_BZ, mean_BZ, logvar_BZ)

    def decode(self, z_BZ: Tensor) -> Tensor:
        """Return the mean image of p(x|z)."""
        return self.likelihood.mean(self.decoder(z_BZ))

    def representation(self) -> Representation:
        return Representation(lambda x: self.posterior(x)[0], self.latents, self.decode, self.posterior)
