"""Shared by the tests of single methods: a small problem in float64, and the terms of the VAE.

Shape letters: B batch, Z latents.
"""

import math
from types import SimpleNamespace

import pytest
import torch
from torch import nn
from torch.distributions import Bernoulli, Independent, Laplace, Normal, kl_divergence

from unweave.contract import Batch, DataInfo
from unweave.nn import likelihoods
from unweave.nn.autoencoder import Pass
from unweave.ops.divergence import kl_standard, reparametrize

PIXELS = 8 * 8


class Case:
    """A method on random 8 x 8 images, with a batch and its noise."""

    def __init__(self, cls, *, batch=5, latents=3, size=1000, **arguments):
        self.draw = torch.Generator().manual_seed(1)
        with torch.random.fork_rng():
            torch.manual_seed(0)
            self.method = cls(DataInfo((1, 8, 8), size), latents=latents, net="small", **arguments).double()
        with torch.no_grad():  # away from zero biases, and from posteriors that hardly depend on the image
            for parameter in self.method.autoencoder.parameters():
                parameter += 0.1 * self.random(torch.randn, *parameter.shape)
            for network in (self.method.autoencoder.encoder, self.method.autoencoder.decoder):
                last = [layer for layer in network.modules() if hasattr(layer, "weight")][-1]
                last.weight *= 6.0
        x, x_other, pair = (self.random(torch.rand, batch, 1, 8, 8) for _ in range(3))
        changed = torch.arange(batch) % latents + 1
        self.batch = Batch(x=x, x_other=x_other, pair=pair, changed=changed)
        draws = {"normal": torch.randn, "uniform": torch.rand}
        self.noise = {n: self.random(draws[r.kind], batch, latents) for n, r in self.method.noise.items()}

    def random(self, kind, *shape):
        return kind(shape, generator=self.draw, dtype=torch.float64)

    def out(self, step=0, **hyper):
        values = {name: torch.tensor(value, dtype=torch.float64) for name, value in hyper.items()}
        return self.method(self.batch, self.noise, self.method.Hyper(**values), torch.tensor(step))

    def posterior(self, x):
        mean, logvar = self.method.autoencoder.posterior(x)
        return Independent(Normal(mean, (0.5 * logvar).exp()), 1)

    def likelihood(self, z):
        output = self.method.autoencoder.decoder(z)
        kinds = {
            likelihoods.Bernoulli: lambda o: Bernoulli(logits=o, validate_args=False),
            likelihoods.Gaussian: lambda o: Normal(o, 1.0),
            likelihoods.Laplace: lambda o: Laplace(o, 1.0),
        }
        return Independent(kinds[type(self.method.autoencoder.likelihood)](output), 3)

    def terms(self):
        """Return reconstruction and KL of each observation, from torch.distributions."""
        q = self.posterior(self.batch.x)
        z = q.mean + q.stddev * self.noise["eps"]
        prior = Independent(Normal(torch.zeros_like(z), 1.0), 1)
        recon_B = -self.likelihood(z).log_prob(self.batch.x)
        return SimpleNamespace(q=q, z=z, recon_B=recon_B, kl_B=kl_divergence(q, prior))

    def fix(self, *, mean, var):
        """Set one posterior for all images and coordinates, and a decoder that predicts 1/2 everywhere."""
        with torch.no_grad():
            for parameter in self.method.autoencoder.parameters():
                parameter.zero_()
            bias_2Z = self.method.autoencoder.encoder[-1].bias
            half = len(bias_2Z) // 2
            bias_2Z[:half], bias_2Z[half:] = mean, math.log(var)
        return self


class FixedPosterior(nn.Module):
    """Replaces an autoencoder: fixed posteriors and no reconstruction error."""

    def __init__(self, mean_BZ, var_BZ):
        super().__init__()
        self.mean_BZ = nn.Parameter(torch.as_tensor(mean_BZ, dtype=torch.float64))
        self.logvar_BZ = nn.Parameter(torch.as_tensor(var_BZ, dtype=torch.float64).log())

    def posterior(self, x):
        return self.mean_BZ, self.logvar_BZ

    def nll(self, x, z_BZ):
        return 0.0 * z_BZ.sum(1)

    def forward(self, x, eps_BZ):
        z_BZ = reparametrize(self.mean_BZ, self.logvar_BZ, eps_BZ)
        return Pass(self.nll(x, z_BZ), kl_standard(self.mean_BZ, self.logvar_BZ), z_BZ, self.mean_BZ, self.logvar_BZ)


@pytest.fixture
def case():
    return Case


@pytest.fixture
def fixed_posterior():
    return FixedPosterior


@pytest.fixture
def log2_image():
    """-log p of any 8 x 8 image if every pixel is predicted as 1/2: the Bernoulli loss is 1 bit per pixel."""
    return PIXELS * math.log(2.0)
