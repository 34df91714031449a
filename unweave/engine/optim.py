"""The optimizers, each a pure function of parameters, gradients and its own memory."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from unweave.ops.no_fuse import no_fuse


class Optimizer(NamedTuple):
    """One player's optimizer settings: Adam, or with `momentum` gradient descent, which has no betas and no eps.

    The learning rate is a schedule row (see `program.schedule_row`).
    """

    lr: Tensor
    betas: tuple[float, float] = (0.9, 0.999)
    eps: float = 1e-8
    clip: Tensor | None = None  # largest norm of the whole gradient
    momentum: float | None = None


class Moments(NamedTuple):
    """What is remembered of one player: running means of gradients and their squares, and how often it moved.

    Gradient descent keeps its running sum of gradients as the mean, and no squares.
    """

    mean: list[Tensor]
    square: list[Tensor]
    updates: Tensor


def _beside(scalar: Tensor, tensor: Tensor) -> Tensor:
    """A number for all of a tensor; one per replica where the tensor has a leading replica axis."""
    return scalar.reshape(scalar.shape + (1,) * (tensor.dim() - scalar.dim()))


def clipped(grads: list[Tensor], largest: Tensor) -> list[Tensor]:
    """The gradients, scaled so that their joint norm is at most `largest` (of each replica, if that has an axis)."""
    squares = [g.square().reshape(*largest.shape, -1).sum(-1) for g in grads]
    norm = torch.stack(squares).sum(0).sqrt()
    scale = no_fuse((largest / (norm + 1e-12)).clamp(max=1.0))
    return [g * _beside(scale, g) for g in grads]


def update(
    optimizer: Optimizer, lr: Tensor, params: list[Tensor], grads: list[Tensor], memory: Moments
) -> tuple[list[Tensor], Moments]:
    """New parameters and new memory."""
    if optimizer.clip is not None:
        grads = clipped(grads, optimizer.clip)
    if optimizer.momentum is not None:
        return _descent(optimizer.momentum, lr, params, grads, memory)
    return _adam(optimizer, lr, params, grads, memory)


def _descent(
    momentum: float, lr: Tensor, params: list[Tensor], grads: list[Tensor], memory: Moments
) -> tuple[list[Tensor], Moments]:
    """Gradient descent with momentum: v <- momentum v + g, p <- p - lr v."""
    rate = no_fuse(lr)
    speed = [v * momentum + g for v, g in zip(memory.mean, grads, strict=True)]
    moved = [p - v * _beside(rate, p) for p, v in zip(params, speed, strict=True)]
    return moved, Moments(speed, memory.square, memory.updates + 1.0)


def _adam(
    adam: Optimizer, lr: Tensor, params: list[Tensor], grads: list[Tensor], memory: Moments
) -> tuple[list[Tensor], Moments]:
    """Kingma & Ba 2015, algorithm 1."""
    first, second = adam.betas
    count = memory.updates + 1.0
    # m/(1 - b1^t) / (sqrt(v/(1 - b2^t)) + eps), with both corrections drawn into two scalars
    root = torch.sqrt(1.0 - second**count)
    rate, floor = no_fuse(lr * root / (1.0 - first**count)), no_fuse(adam.eps * root)
    mean = [torch.lerp(m, g, 1.0 - first) for m, g in zip(memory.mean, grads, strict=True)]
    square = [torch.lerp(v, g * g, 1.0 - second) for v, g in zip(memory.square, grads, strict=True)]
    moved = [
        p - m / (v.sqrt() + _beside(floor, p)) * _beside(rate, p) for p, m, v in zip(params, mean, square, strict=True)
    ]
    return moved, Moments(mean, square, count)
