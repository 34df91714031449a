"""How far codes are from labels of their factors: latent i belongs to labelled factor i, the others are free.

Class c of n stands for a number: its place on a line, so that the order of the classes counts. A label of -1 is
unknown and takes no part. Nothing here selects by a mask: shapes stay those of the batch.

Shape letters: B batch, Z latents, L labelled factors (L <= Z).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import torch
import torch.nn.functional as F
from torch import Tensor


def between_0_and_1(labels_BL: Tensor, sizes: Sequence[int]) -> Tensor:
    """Class c of n as c / (n - 1); the only class of a factor is 1/2."""
    columns = zip(labels_BL.unbind(1), sizes, strict=True)
    return torch.stack([label_B / (n - 1) if n > 1 else 0.0 * label_B + 0.5 for label_B, n in columns], dim=1)


def standardised(labels_BL: Tensor, sizes: Sequence[int]) -> Tensor:
    """Class c of n with mean 0 and variance 1, were the classes equally likely; the only class of a factor is 0."""
    columns = zip(labels_BL.unbind(1), sizes, strict=True)
    return torch.stack([(label_B - 0.5 * (n - 1)) / _deviation(n) for label_B, n in columns], dim=1)


def _deviation(n: int) -> float:
    return math.sqrt((n * n - 1) / 12.0) or 1.0


def label_cross_entropy(mean_BL: Tensor, target_BL: Tensor, known_BL: Tensor) -> Tensor:
    """-y log s(m) - (1 - y) log(1 - s(m)) with s the logistic function, summed over the known factors [B]."""
    return (known_BL * F.binary_cross_entropy_with_logits(mean_BL, target_BL, reduction="none")).sum(1)


def label_squares(mean_BL: Tensor, target_BL: Tensor, known_BL: Tensor) -> Tensor:
    """(m - y)^2 summed over the known factors [B]."""
    return (known_BL * (mean_BL - target_BL).square()).sum(1)


def cross_covariance(mean_BZ: Tensor, target_BL: Tensor, known_BL: Tensor) -> Tensor:
    """Covariance of every latent with every factor [Z, L], for each factor over the rows that know it."""
    count_L = known_BL.sum(0).clamp_min(1.0)
    centred_BL = known_BL * (target_BL - (known_BL * target_BL).sum(0) / count_L)
    return mean_BZ.T @ centred_BL / count_L  # centred labels make up for means that are not


def off_diagonal_squares(cov_ZL: Tensor) -> Tensor:
    """The sum of squares of all but the entries (i, i)."""
    return cov_ZL.square().sum() - cov_ZL.diagonal().square().sum()


def _known(mean_BZ: Tensor, labels_BL: Tensor) -> Tensor:
    return (labels_BL >= 0).to(mean_BZ.dtype)


def xent_term(mean_BZ: Tensor, labels_BL: Tensor, sizes: Sequence[int]) -> Tensor:
    """Cross-entropy of the first latents, as logits, with the factors between 0 and 1: mean over the batch."""
    target_BL = between_0_and_1(labels_BL.to(mean_BZ.dtype), sizes)
    return label_cross_entropy(mean_BZ[:, : len(sizes)], target_BL, _known(mean_BZ, labels_BL)).mean()


def l2_term(mean_BZ: Tensor, labels_BL: Tensor, sizes: Sequence[int]) -> Tensor:
    """Squared distance of the first latents to the standardised factors: mean over the batch."""
    target_BL = standardised(labels_BL.to(mean_BZ.dtype), sizes)
    return label_squares(mean_BZ[:, : len(sizes)], target_BL, _known(mean_BZ, labels_BL)).mean()


def cov_term(mean_BZ: Tensor, labels_BL: Tensor, sizes: Sequence[int]) -> Tensor:
    """Squared covariances of the standardised factors with the latents that are not theirs."""
    target_BL = standardised(labels_BL.to(mean_BZ.dtype), sizes)
    return off_diagonal_squares(cross_covariance(mean_BZ, target_BL, _known(mean_BZ, labels_BL)))


LABEL_TERMS: dict[str, Callable[[Tensor, Tensor, Sequence[int]], Tensor]] = {
    "xent": xent_term,
    "l2": l2_term,
    "cov": cov_term,
}
