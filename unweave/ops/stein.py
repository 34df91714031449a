"""Stein variational gradients (Liu & Wang 2016): the direction in which codes approach a density.

Shape letters: B batch (i: the updated code, j: the other one), Z latents.
"""

import math

import torch
from torch import Tensor

from unweave.ops.mmd import square_distances

_SMALLEST = 1e-6  # bandwidth, if all codes are equal


def median_bandwidth(square_BB: Tensor) -> Tensor:
    """Return median^2 / log B over all pairs, with which the kernels of a code sum to about one."""
    batch = square_BB.shape[0]
    i, j = torch.triu_indices(batch, batch, 1, device=square_BB.device).unbind()
    return (square_BB[i, j].median() / math.log(batch)).clamp_min(_SMALLEST)


def stein_direction(z_BZ: Tensor, score_BZ: Tensor, bandwidth: Tensor) -> Tensor:
    """Return phi(z_i) = mean_j [k(z_j, z_i) score(z_j) + grad_(z_j) k(z_j, z_i)], k = exp(-d^2 / bandwidth)."""
    kernel_BB = (-square_distances(z_BZ, z_BZ) / bandwidth).exp()
    attraction_BZ = kernel_BB @ score_BZ
    repulsion_BZ = (2.0 / bandwidth) * (kernel_BB.sum(1, keepdim=True) * z_BZ - kernel_BB @ z_BZ)
    return (attraction_BZ + repulsion_BZ) / z_BZ.shape[0]


def stein_surrogate(z_BZ: Tensor) -> Tensor:
    """Return -z . phi(z) with phi constant: its gradient moves the codes along phi towards N(0, 1).

    This is the direction of steepest descent of KL(q(z) || p(z)). The value itself has no meaning.
    """
    constant_BZ = z_BZ.detach()
    bandwidth = median_bandwidth(square_distances(constant_BZ, constant_BZ))
    return -(z_BZ * stein_direction(constant_BZ, -constant_BZ, bandwidth)).sum(1).mean()
