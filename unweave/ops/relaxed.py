"""Samples of a categorical distribution with gradients (Jang et al. 2017, Maddison et al. 2017)."""

import torch
from torch import Tensor

_SMALLEST = 1e-10  # a uniform number of 0 would give an infinite Gumbel number


def straight_through(logits: Tensor, uniform: Tensor, temperature: Tensor) -> Tensor:
    """Return a one-hot sample along the last axis, with the gradient of the Gumbel-softmax at this temperature."""
    gumbel = -torch.log(-torch.log(uniform.clamp_min(_SMALLEST)))
    soft = torch.softmax((logits + gumbel) / temperature, -1)
    classes = torch.arange(soft.shape[-1], device=soft.device)
    hard = (soft.argmax(-1, keepdim=True) == classes).to(soft.dtype)
    return hard + (soft - soft.detach())
