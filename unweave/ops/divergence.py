"""Densities and divergences of diagonal Gaussians, elementwise: the caller sums over latents."""

import math

import torch
from torch import Tensor

_LOG_2PI = math.log(2.0 * math.pi)


def kl_standard(mean: Tensor, logvar: Tensor) -> Tensor:
    """Return KL(N(mean, var) || N(0, 1)) for each coordinate."""
    return 0.5 * (mean.square() + logvar.exp() - logvar - 1.0)


def kl_to_mean(mean_ND: Tensor, logvar_ND: Tensor) -> Tensor:
    """Return the mean KL of each row's posterior to the Gaussian with the moments of all rows [D].

    It is an upper bound of the mutual information of a coordinate and the row, and tighter than the KL to the prior: it
    is 0 if all rows have the same posterior.
    """
    variance_D = mean_ND.var(0, correction=0) + logvar_ND.exp().mean(0)
    return 0.5 * (variance_D.log() - logvar_ND.mean(0))


def kl_gaussians(mean: Tensor, logvar: Tensor, other_mean: Tensor, other_logvar: Tensor) -> Tensor:
    """Return KL(N(mean, var) || N(other_mean, other_var)) for each coordinate."""
    difference = (mean - other_mean).square() * torch.exp(-other_logvar)
    return 0.5 * (other_logvar - logvar + torch.exp(logvar - other_logvar) + difference - 1.0)


def log_gaussian(z: Tensor, mean: Tensor, logvar: Tensor) -> Tensor:
    """Return log N(z; mean, var) for each coordinate."""
    return -0.5 * (_LOG_2PI + logvar + (z - mean).square() * torch.exp(-logvar))


def log_standard(z: Tensor) -> Tensor:
    """Return log N(z; 0, 1) for each coordinate."""
    return -0.5 * (_LOG_2PI + z.square())


def reparametrize(mean: Tensor, logvar: Tensor, eps: Tensor) -> Tensor:
    """Return a sample of N(mean, var) with gradients to both."""
    return mean + torch.exp(0.5 * logvar) * eps
