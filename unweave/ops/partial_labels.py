"""Bounds and losses where some observations have a class and the others have not.

Shape letters: B batch, Y classes.
"""

from __future__ import annotations

import torch
from torch import Tensor


def marginal_bound(bound_BY: Tensor, logq_BY: Tensor) -> Tensor:
    """U(x) [B] of Kingma et al. 2014, eq. 7: the bound of an observation without a class, from those of every class.

    sum_y q(y|x) L(x, y) - H(q(y|x)), exactly.
    """
    return (logq_BY.exp() * (bound_BY + logq_BY)).sum(1)


def one_hot(class_B: Tensor, like_BY: Tensor) -> Tensor:
    """The classes as rows [B, Y] of zeros and a one, in the form of `like`. (torch's own looks at its values.)"""
    return (class_B.unsqueeze(1) == torch.arange(like_BY.shape[1], device=class_B.device)).to(like_BY.dtype)


def binary_sample(x: Tensor, uniform: Tensor) -> Tensor:
    """Black or white for every pixel, its grey value being the chance of white."""
    return (uniform < x).to(x.dtype)


def squared_hinge(score_BY: Tensor, sign_BY: Tensor) -> Tensor:
    """A support vector machine's loss of each class against the others: max(0, 1 - sign score)^2."""
    return (1.0 - sign_BY * score_BY).clamp_min(0.0).square()


def unlabelled_loss(score_BY: Tensor) -> Tensor:
    """What an observation without a label costs near a boundary: exp(-3 score^2) (Chapelle & Zien 2005)."""
    return torch.exp(-3.0 * score_BY.square())


def cross_entropy(logits_BY: Tensor, labels_B: Tensor) -> Tensor:
    """-log q(y|x) [B] in nats; 0 where the label is unknown (-1)."""
    told_B = logits_BY.log_softmax(1).gather(1, labels_B.clamp_min(0)[:, None])[:, 0]
    return -told_B * (labels_B >= 0)


def zero_one_loss(logits_BY: Tensor, labels_B: Tensor) -> Tensor:
    """1 where the likeliest class is not the label [B]; 0 where it is, or where the label is unknown (-1)."""
    return ((logits_BY.argmax(1) != labels_B) & (labels_B >= 0)).to(logits_BY.dtype)
