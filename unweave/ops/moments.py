"""Penalties on the moments of the posterior means or the inferred prior (Kumar et al. 2018).

Shape letters: B batch, Z latents.
"""

from torch import Tensor


def covariance(values_BZ: Tensor) -> Tensor:
    """Return the covariance over the batch [Z, Z], divided by B."""
    centred_BZ = values_BZ - values_BZ.mean(0)
    return centred_BZ.T @ centred_BZ / values_BZ.shape[0]


def identity_penalty(cov_ZZ: Tensor, weight_off: Tensor, weight_diagonal: Tensor) -> Tensor:
    """Return weight_off * sum of squared off-diagonals + weight_diagonal * sum of (diagonal - 1)^2."""
    diagonal_Z = cov_ZZ.diagonal()
    off = cov_ZZ.square().sum() - diagonal_Z.square().sum()
    return weight_off * off + weight_diagonal * (diagonal_Z - 1.0).square().sum()
