"""Densities and divergences of diagonal Gaussians, elementwise: the caller sums over latents."""

from __future__ import annotations

import math

import torch
from torch import Tensor

_LOG_2PI = math.log(2.0 * math.pi)


def kl_standard(mean: Tensor, logvar: Tensor) -> Tensor:
    """KL(N(mean, var) || N(0, 1)) for each coordinate."""
    return 0.5 * (mean.square() + logvar.exp() - logvar - 1.0)


def kl_to_mean(mean_ND: Tensor, logvar_ND: Tensor) -> Tensor:
    """KL of a row's posterior to the Gaussian with the moments of all rows together, mean over the rows [D].

    An upper bound of what a coordinate tells about the row, and tighter than the KL to the prior: 0 where all rows
    have the same posterior, whatever that is.
    """
    variance_D = mean_ND.var(0, correction=0) + logvar_ND.exp().mean(0)
    return 0.5 * (variance_D.log() - logvar_ND.mean(0))


def kl_gaussians(mean: Tensor, logvar: Tensor, other_mean: Tensor, other_logvar: Tensor) -> Tensor:
    """KL(N(mean, var) || N(other_mean, other_var)) for each coordinate."""
    difference = (mean - other_mean).square() * torch.exp(-other_logvar)
    return 0.5 * (other_logvar - logvar + torch.exp(logvar - other_logvar) + difference - 1.0)


def log_gaussian(z: Tensor, mean: Tensor, logvar: Tensor) -> Tensor:
    """log N(z; mean, var) for each coordinate."""
    return -0.5 * (_LOG_2PI + logvar + (z - mean).square() * torch.exp(-logvar))


def log_standard(z: Tensor) -> Tensor:
    """log N(z; 0, 1) for each coordinate."""
    return -0.5 * (_LOG_2PI + z.square())


def reparametrize(mean: Tensor, logvar: Tensor, eps: Tensor) -> Tensor:
    """A sample of N(mean, var) that lets gradients through."""
    return mean + torch.exp(0.5 * logvar) * eps
