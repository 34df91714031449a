"""Stein variational gradients (Liu & Wang 2016): the direction in which codes go to approach a density.

Shape letters: B batch (j: the code that pulls, i: the one that moves), Z latents.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from unweave.ops.mmd import square_distances

_SMALLEST = 1e-6  # of the bandwidth, should all codes be one


def median_bandwidth(square_BB: Tensor) -> Tensor:
    """median^2 / log B over all pairs: about one neighbour's worth of kernel for each code."""
    batch = square_BB.shape[0]
    i, j = torch.triu_indices(batch, batch, 1, device=square_BB.device).unbind()
    return (square_BB[i, j].median() / math.log(batch)).clamp_min(_SMALLEST)


def stein_direction(z_BZ: Tensor, score_BZ: Tensor, bandwidth: Tensor) -> Tensor:
    """phi(z_i) = mean_j [k(z_j, z_i) score(z_j) + grad_(z_j) k(z_j, z_i)], k = exp(-d^2 / bandwidth); [B, Z]."""
    kernel_BB = (-square_distances(z_BZ, z_BZ) / bandwidth).exp()
    pull_BZ = kernel_BB @ score_BZ
    push_BZ = (2.0 / bandwidth) * (kernel_BB.sum(1, keepdim=True) * z_BZ - kernel_BB @ z_BZ)
    return (pull_BZ + push_BZ) / z_BZ.shape[0]


def stein_surrogate(z_BZ: Tensor) -> Tensor:
    """A number whose gradient moves the codes along phi towards N(0, 1); its value means nothing.

    It is -z . phi(z) with phi held fixed: minimising it takes every code in the direction that lowers KL(q(z) || p(z))
    fastest.
    """
    held_BZ = z_BZ.detach()
    bandwidth = median_bandwidth(square_distances(held_BZ, held_BZ))
    return -(z_BZ * stein_direction(held_BZ, -held_BZ, bandwidth)).sum(1).mean()
