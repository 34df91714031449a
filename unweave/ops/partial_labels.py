"""Bounds and losses for observations with and without a class label.

Shape letters: B batch, Y classes.
"""

import torch
from torch import Tensor


def marginal_bound(bound_BY: Tensor, logq_BY: Tensor) -> Tensor:
    """Return U(x) = sum_y q(y|x) L(x, y) - H(q(y|x)) [B], the bound of unlabelled observations.

    Kingma et al. 2014, eq. 7.
    """
    return (logq_BY.exp() * (bound_BY + logq_BY)).sum(1)


def one_hot(class_B: Tensor, like_BY: Tensor) -> Tensor:
    """Return one-hot rows [B, Y] with the shape and dtype of `like`. (That of torch depends on the values.)"""
    return (class_B.unsqueeze(1) == torch.arange(like_BY.shape[1], device=class_B.device)).to(like_BY.dtype)


def binary_sample(x: Tensor, uniform: Tensor) -> Tensor:
    """Draw black or white for every pixel, with its grey value as the probability of white."""
    return (uniform < x).to(x.dtype)


def squared_hinge(score_BY: Tensor, sign_BY: Tensor) -> Tensor:
    """Return the loss of a support vector machine for each class against the others: max(0, 1 - sign score)^2."""
    return (1.0 - sign_BY * score_BY).clamp_min(0.0).square()


def unlabelled_loss(score_BY: Tensor) -> Tensor:
    """Return the loss of unlabelled observations near a boundary: exp(-3 score^2) (Chapelle & Zien 2005)."""
    return torch.exp(-3.0 * score_BY.square())


def cross_entropy(logits_BY: Tensor, labels_B: Tensor) -> Tensor:
    """Return -log q(y|x) [B] in nats; 0 if the label is unknown (-1)."""
    logq_B = logits_BY.log_softmax(1).gather(1, labels_B.clamp_min(0)[:, None])[:, 0]
    return -logq_B * (labels_B >= 0)


def zero_one_loss(logits_BY: Tensor, labels_B: Tensor) -> Tensor:
    """Return 1 if the most probable class is not the label [B]; 0 if it is, or the label is unknown (-1)."""
    return ((logits_BY.argmax(1) != labels_B) & (labels_B >= 0)).to(logits_BY.dtype)
