"""Distances of codes to labels: latent i belongs to labelled factor i, the other latents are free.

A class is converted to a number, so the order of the classes matters. A label of -1 is unknown and ignored. Unknown
labels are multiplied by 0 instead of selected, so that shapes do not depend on the data.

Shape letters: B batch, Z latents, L labelled factors (L <= Z).
"""

import math
from collections.abc import Callable, Sequence

import torch
import torch.nn.functional as F
from torch import Tensor


def between_0_and_1(labels_BL: Tensor, sizes: Sequence[int]) -> Tensor:
    """Return c / (n - 1) for class c of n; the only class of a factor is 1/2."""
    columns = zip(labels_BL.unbind(1), sizes, strict=True)
    return torch.stack([label_B / (n - 1) if n > 1 else 0.0 * label_B + 0.5 for label_B, n in columns], dim=1)


def standardised(labels_BL: Tensor, sizes: Sequence[int]) -> Tensor:
    """Scale classes to mean 0 and variance 1 if all are equally likely; the only class of a factor is 0."""
    columns = zip(labels_BL.unbind(1), sizes, strict=True)
    deviated = [(label_B - 0.5 * (n - 1)) / (math.sqrt((n * n - 1) / 12.0) or 1.0) for label_B, n in columns]
    return torch.stack(deviated, dim=1)


def cross_covariance(mean_BZ: Tensor, target_BL: Tensor, known_BL: Tensor) -> Tensor:
    """Return the covariance of every latent with every factor [Z, L], over the observations with that label."""
    count_L = known_BL.sum(0).clamp_min(1.0)
    centred_BL = known_BL * (target_BL - (known_BL * target_BL).sum(0) / count_L)
    return mean_BZ.T @ centred_BL / count_L  # the labels are centred, so the means need not be


def off_diagonal_squares(cov_ZL: Tensor) -> Tensor:
    """Return the sum of squares of all entries except (i, i)."""
    return cov_ZL.square().sum() - cov_ZL.diagonal().square().sum()


def _known(mean_BZ: Tensor, labels_BL: Tensor) -> Tensor:
    return (labels_BL >= 0).to(mean_BZ.dtype)


def xent_term(mean_BZ: Tensor, labels_BL: Tensor, sizes: Sequence[int]) -> Tensor:
    """Return the cross-entropy -y log s(m) - (1 - y) log(1 - s(m)) of the first latents m, s the logistic function.

    The labels y are scaled to 0..1; the term is summed over the known ones and averaged over the batch.
    """
    target_BL = between_0_and_1(labels_BL.to(mean_BZ.dtype), sizes)
    terms_BL = F.binary_cross_entropy_with_logits(mean_BZ[:, : len(sizes)], target_BL, reduction="none")
    return (_known(mean_BZ, labels_BL) * terms_BL).sum(1).mean()


def l2_term(mean_BZ: Tensor, labels_BL: Tensor, sizes: Sequence[int]) -> Tensor:
    """Return (m - y)^2 for the first latents m and standardised labels y, summed and averaged as in `xent_term`."""
    target_BL = standardised(labels_BL.to(mean_BZ.dtype), sizes)
    return (_known(mean_BZ, labels_BL) * (mean_BZ[:, : len(sizes)] - target_BL).square()).sum(1).mean()


def cov_term(mean_BZ: Tensor, labels_BL: Tensor, sizes: Sequence[int]) -> Tensor:
    """Return the sum of squared covariances of the standardised factors with the latents of other factors."""
    target_BL = standardised(labels_BL.to(mean_BZ.dtype), sizes)
    return off_diagonal_squares(cross_covariance(mean_BZ, target_BL, _known(mean_BZ, labels_BL)))


LABEL_TERMS: dict[str, Callable[[Tensor, Tensor, Sequence[int]], Tensor]] = {
    "xent": xent_term,
    "l2": l2_term,
    "cov": cov_term,
}
