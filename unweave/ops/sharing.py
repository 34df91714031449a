"""Shared coordinates of the posteriors of a pair (Locatello et al. 2020), and aggregates of Gaussians.

Shape letters: B batch, Z latents. Posteriors are diagonal Gaussians, given as (mean, logvar).
"""

import math
from collections.abc import Callable

import torch
from torch import Tensor

from unweave.ops.divergence import kl_gaussians

Gaussian = tuple[Tensor, Tensor]  # mean, logvar
Aggregate = Callable[[Tensor, Tensor, int], Gaussian]


def product_of_gaussians(mean: Tensor, logvar: Tensor, dim: int) -> Gaussian:
    """Return the normalised product of Gaussians along `dim`: precisions are summed, means weighted by precision."""
    weight = torch.softmax(-logvar, dim)  # relative precision
    return (weight * mean).sum(dim), -torch.logsumexp(-logvar, dim)


def average_of_gaussians(mean: Tensor, logvar: Tensor, dim: int) -> Gaussian:
    """Return the Gaussian with the mean of the means and of the variances along `dim`."""
    return mean.mean(dim), torch.logsumexp(logvar, dim) - math.log(logvar.shape[dim])


def pair_divergence(first: Gaussian, other: Gaussian, *, symmetric: bool) -> Tensor:
    """Return KL(first || other) for each coordinate, or its mean over both directions."""
    forward = kl_gaussians(*first, *other)
    return 0.5 * (forward + kl_gaussians(*other, *first)) if symmetric else forward


def shared_by_threshold(divergence_BZ: Tensor) -> Tensor:
    """Return True for coordinates with a divergence below the midpoint of the pair's smallest and largest one."""
    smallest_B1 = divergence_BZ.amin(1, keepdim=True)
    largest_B1 = divergence_BZ.amax(1, keepdim=True)
    return divergence_BZ < 0.5 * (smallest_B1 + largest_B1)


def shared_by_count(divergence_BZ: Tensor, changed_B: Tensor) -> Tensor:
    """Return True for the Z - k coordinates of smallest divergence, k the number of changed factors of the pair."""
    rank_BZ = divergence_BZ.argsort(1).argsort(1)
    return rank_BZ < (divergence_BZ.shape[1] - changed_B).unsqueeze(1)


def average_shared(first: Gaussian, other: Gaussian, shared_BZ: Tensor) -> tuple[Gaussian, ...]:
    """Return both posteriors with the mean of means and of variances in the shared coordinates."""
    mean_BZ = 0.5 * (first[0] + other[0])
    logvar_BZ = torch.logaddexp(first[1], other[1]) - torch.log(torch.full_like(mean_BZ, 2.0))
    return _replace_shared(first, other, shared_BZ, (mean_BZ, logvar_BZ))


def multiply_shared(first: Gaussian, other: Gaussian, shared_BZ: Tensor) -> tuple[Gaussian, ...]:
    """Return both posteriors with their normalised product in the shared coordinates."""
    mean_2BZ, logvar_2BZ = (torch.stack(part) for part in zip(first, other, strict=True))
    return _replace_shared(first, other, shared_BZ, product_of_gaussians(mean_2BZ, logvar_2BZ, 0))


def _replace_shared(first: Gaussian, other: Gaussian, shared_BZ: Tensor, by: Gaussian) -> tuple[Gaussian, ...]:
    return tuple(
        (torch.where(shared_BZ, by[0], mean), torch.where(shared_BZ, by[1], logvar)) for mean, logvar in (first, other)
    )
