"""The optimizer, as a pure function of parameters, gradients and its own memory."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor


class Adam(NamedTuple):
    """One player's optimizer settings; the learning rate is a schedule row (see `program.schedule_row`)."""

    lr: Tensor
    betas: tuple[float, float] = (0.9, 0.999)
    eps: float = 1e-8
    clip: float = 0.0  # largest norm of the whole gradient; 0 is no clipping


class Moments(NamedTuple):
    """What Adam remembers of one player: running means of gradients and their squares, and how often it moved."""

    mean: list[Tensor]
    square: list[Tensor]
    updates: Tensor


def clipped(grads: list[Tensor], largest: float) -> list[Tensor]:
    """The gradients, scaled so that their joint norm is at most `largest`."""
    norm = torch.stack([g.square().sum() for g in grads]).sum().sqrt()
    return list(torch._foreach_mul(grads, (largest / (norm + 1e-12)).clamp(max=1.0)))


def update(
    adam: Adam, lr: Tensor, params: list[Tensor], grads: list[Tensor], memory: Moments
) -> tuple[list[Tensor], Moments]:
    """Kingma & Ba 2015, algorithm 1: new parameters and new memory."""
    if adam.clip:
        grads = clipped(grads, adam.clip)
    first, second = adam.betas
    count = memory.updates + 1.0
    mean = torch._foreach_lerp(memory.mean, grads, 1.0 - first)
    square = torch._foreach_lerp(memory.square, torch._foreach_mul(grads, grads), 1.0 - second)
    # m/(1 - b1^t) / (sqrt(v/(1 - b2^t)) + eps), with both corrections drawn into two scalars
    root = torch.sqrt(1.0 - second**count)
    rate = lr * root / (1.0 - first**count)
    below = torch._foreach_add(torch._foreach_sqrt(square), [adam.eps * root] * len(square))
    moves = torch._foreach_mul(torch._foreach_div(mean, below), rate)
    return list(torch._foreach_sub(params, moves)), Moments(list(mean), list(square), count)
