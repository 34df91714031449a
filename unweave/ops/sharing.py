"""What two posteriors share: masks and averages over pairs (Locatello et al. 2020)."""

from __future__ import annotations

import torch
from torch import Tensor


def shared_by_threshold(divergence_BZ: Tensor) -> Tensor:
    """True where a coordinate's divergence lies below half-way between the pair's smallest and largest."""
    smallest_B1 = divergence_BZ.amin(1, keepdim=True)
    largest_B1 = divergence_BZ.amax(1, keepdim=True)
    return divergence_BZ < 0.5 * (smallest_B1 + largest_B1)


def shared_by_count(divergence_BZ: Tensor, changed_B: Tensor) -> Tensor:
    """True on the Z - k coordinates of smallest divergence, k the number of changed factors of the pair."""
    rank_BZ = divergence_BZ.argsort(1).argsort(1)
    return rank_BZ < (divergence_BZ.shape[1] - changed_B).unsqueeze(1)


def average_shared(first: tuple[Tensor, Tensor], other: tuple[Tensor, Tensor], shared_BZ: Tensor) -> tuple:
    """Both posteriors (mean, logvar), with the mean of means and of variances on the shared coordinates."""
    mean_BZ = 0.5 * (first[0] + other[0])
    logvar_BZ = torch.logaddexp(first[1], other[1]) - torch.log(torch.full_like(mean_BZ, 2.0))
    return tuple(
        (torch.where(shared_BZ, mean_BZ, mean), torch.where(shared_BZ, logvar_BZ, logvar))
        for mean, logvar in (first, other)
    )
