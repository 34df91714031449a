"""The optimizer, as a pure function of parameters, gradients and its own memory."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor


class Adam(NamedTuple):
    """One player's optimizer settings. The learning rate is a schedule row (see `program.schedule_row`)."""

    lr: Tensor
    betas: tuple[float, float] = (0.9, 0.999)
    eps: float = 1e-8
    clip: Tensor | None = None  # largest norm of the whole gradient


class Moments(NamedTuple):
    """What Adam remembers of one player: running means of gradients and their squares, and how often it moved."""

    mean: list[Tensor]
    square: list[Tensor]
    updates: Tensor


@torch.library.custom_op("unweave::settled", mutates_args=())
def _settled(values: Tensor) -> Tensor:
    return values.clone()


@_settled.register_fake
def _(values: Tensor) -> Tensor:
    return torch.empty_like(values)


def settled(values: Tensor) -> Tensor:
    """The same numbers, one per replica, computed once: a compiler would otherwise do it again for every weight."""
    return _settled(values) if values.dim() else values


def _each(scalar: Tensor, tensors: list[Tensor]) -> list[Tensor]:
    """A number for every tensor; one per replica where the tensors have a leading replica axis."""
    return [scalar.reshape(scalar.shape + (1,) * (t.dim() - scalar.dim())) for t in tensors]


def clipped(grads: list[Tensor], largest: Tensor) -> list[Tensor]:
    """The gradients, scaled so that their joint norm is at most `largest` (of each replica, if that has an axis)."""
    squares = [g.square().reshape(*largest.shape, -1).sum(-1) for g in grads]
    norm = torch.stack(squares).sum(0).sqrt()
    return list(torch._foreach_mul(grads, _each((largest / (norm + 1e-12)).clamp(max=1.0), grads)))


def update(
    adam: Adam, lr: Tensor, params: list[Tensor], grads: list[Tensor], memory: Moments
) -> tuple[list[Tensor], Moments]:
    """Kingma & Ba 2015, algorithm 1: new parameters and new memory."""
    if adam.clip is not None:
        grads = clipped(grads, adam.clip)
    first, second = adam.betas
    count = memory.updates + 1.0
    mean = torch._foreach_lerp(memory.mean, grads, 1.0 - first)
    square = torch._foreach_lerp(memory.square, torch._foreach_mul(grads, grads), 1.0 - second)
    # m/(1 - b1^t) / (sqrt(v/(1 - b2^t)) + eps), with both corrections drawn into two scalars
    root = torch.sqrt(1.0 - second**count)
    rate, floor = settled(lr * root / (1.0 - first**count)), settled(adam.eps * root)
    below = torch._foreach_add(torch._foreach_sqrt(square), _each(floor, params))
    moves = torch._foreach_mul(torch._foreach_div(mean, below), _each(rate, params))
    return list(torch._foreach_sub(params, moves)), Moments(list(mean), list(square), count)
