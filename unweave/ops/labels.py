"""Classes of labelled observations. Shape letters: B batch, Y classes."""

from __future__ import annotations

from torch import Tensor


def cross_entropy(logits_BY: Tensor, labels_B: Tensor) -> Tensor:
    """-log q(y|x) [B] in nats; 0 where the label is unknown (-1)."""
    told_B = logits_BY.log_softmax(1).gather(1, labels_B.clamp_min(0)[:, None])[:, 0]
    return -told_B * (labels_B >= 0)


def mistakes(logits_BY: Tensor, labels_B: Tensor) -> Tensor:
    """1 where the likeliest class is not the label [B]; 0 where it is, or where the label is unknown (-1)."""
    return ((logits_BY.argmax(1) != labels_B) & (labels_B >= 0)).to(logits_BY.dtype)
