"""Estimates of the aggregate posterior q(z) = E_n q(z|n) from one batch (Chen et al. 2018).

Shape letters: B batch (i: the sample z(n_i), j: the posterior q(.|n_j)), Z latents.
"""

import math
from typing import NamedTuple

import torch
from torch import Tensor

from unweave.errors import check_integer
from unweave.ops.divergence import log_gaussian


class LogDensities(NamedTuple):
    """Log-densities [B] of each sample under q(z), the product of q(z_j), and its own posterior."""

    log_joint: Tensor
    log_product: Tensor
    log_own: Tensor


def stratified_weights(batch: int, size: int, device: torch.device) -> Tensor:
    """Return the weights [B, B] of posterior j in the estimate of q(z(n_i)) by minibatch stratified sampling.

    With M = B - 1: 1/N on the sample's own posterior, (N - M)/(N M) on one other, 1/M on the rest.
    Every row sums to 1. (The usual implementation has the 1/N in column 0 instead of the diagonal.)
    """
    check_integer("batch", batch, 2, size, context="stratified sampling")
    others = batch - 1
    weights = torch.full((batch, batch), 1.0 / others, device=device)
    row = torch.arange(batch, device=device)
    column = row.unsqueeze(0)
    weights = torch.where(column == (row.unsqueeze(1) + 1) % batch, (size - others) / (size * others), weights)
    return torch.where(column == row.unsqueeze(1), 1.0 / size, weights)


def aggregate_posterior(z_BZ: Tensor, mean_BZ: Tensor, logvar_BZ: Tensor, *, size: int, estimator: str) -> LogDensities:
    """Return log-densities under the aggregate posterior of a data set of `size` observations.

    With the estimator "mws" every weight is 1/(N B), with "mss" those of `stratified_weights` are used.
    """
    batch, device = z_BZ.shape[0], z_BZ.device
    log_q_BBZ = log_gaussian(z_BZ.unsqueeze(1), mean_BZ.unsqueeze(0), logvar_BZ.unsqueeze(0))
    if estimator == "mss":
        log_w_BB = stratified_weights(batch, size, device).log()
    else:
        log_w_BB = torch.full((batch, batch), -math.log(size * batch), device=device)
    # Each density is weighted once: after the sum over latents for q(z), per latent for q(z_j).
    log_joint_B = torch.logsumexp(log_w_BB + log_q_BBZ.sum(2), dim=1)
    log_product_B = torch.logsumexp(log_w_BB.unsqueeze(2) + log_q_BBZ, dim=1).sum(1)
    return LogDensities(log_joint_B, log_product_B, log_gaussian(z_BZ, mean_BZ, logvar_BZ).sum(1))


def permute_latents(z_BZ: Tensor, keys_BZ: Tensor) -> Tensor:
    """Return a sample of the product of marginals: each latent is permuted independently over the batch."""
    return z_BZ.gather(0, keys_BZ.argsort(0))
