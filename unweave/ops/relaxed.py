"""Samples of a categorical distribution that let gradients through (Jang et al. 2017, Maddison et al. 2017)."""

from __future__ import annotations

import torch
from torch import Tensor

_LEAST = 1e-10  # uniform numbers may be 0, whose Gumbel number is infinite


def straight_through(logits: Tensor, uniform: Tensor, temperature: Tensor) -> Tensor:
    """A class drawn by its probability, as zeros and a one along the last axis.

    The value is an exact sample. The gradient is that of the Gumbel-softmax at this temperature, of which the sample
    is the largest entry.
    """
    gumbel = -torch.log(-torch.log(uniform.clamp_min(_LEAST)))
    soft = torch.softmax((logits + gumbel) / temperature, -1)
    classes = torch.arange(soft.shape[-1], device=soft.device)
    hard = (soft.argmax(-1, keepdim=True) == classes).to(soft.dtype)
    return hard + (soft - soft.detach())
