"""Optimizers as pure functions of parameters, gradients and moments."""

from typing import NamedTuple

import torch
from torch import Tensor

from unweave.ops.no_fuse import no_fuse


class Optimizer(NamedTuple):
    """Optimizer settings of one player: Adam, or with `momentum` gradient descent, which does not use betas and eps.

    The learning rate is a schedule row (see `program.schedule_row`).
    """

    lr: Tensor
    betas: tuple[float, float] = (0.9, 0.999)
    eps: float = 1e-8
    clip: Tensor | None = None  # maximum norm of the gradient of all parameters
    momentum: float | None = None


class Moments(NamedTuple):
    """Optimizer state of one player: running means of gradients and of their squares, and the number of updates.

    Gradient descent stores its velocity as the mean and does not use the squares.
    """

    mean: list[Tensor]
    square: list[Tensor]
    updates: Tensor


def broadcast(scalar: Tensor, tensor: Tensor) -> Tensor:
    """Reshape a scalar, or one scalar per replica, so that it broadcasts with the tensor."""
    return scalar.reshape(scalar.shape + (1,) * (tensor.dim() - scalar.dim()))


def clip_by_norm(grads: list[Tensor], largest: Tensor) -> list[Tensor]:
    """Return the gradients scaled so that their joint norm is at most `largest`, which may have a replica axis."""
    squares = [g.square().reshape(*largest.shape, -1).sum(-1) for g in grads]
    norm = torch.stack(squares).sum(0).sqrt()
    scale = no_fuse((largest / (norm + 1e-12)).clamp(max=1.0))
    return [g * broadcast(scale, g) for g in grads]


def update(
    optimizer: Optimizer, lr: Tensor, params: list[Tensor], grads: list[Tensor], old: Moments
) -> tuple[list[Tensor], Moments]:
    """Return new parameters and new moments."""
    if optimizer.clip is not None:
        grads = clip_by_norm(grads, optimizer.clip)
    if optimizer.momentum is not None:
        return _sgd(optimizer.momentum, lr, params, grads, old)
    return _adam(optimizer, lr, params, grads, old)


def _sgd(
    momentum: float, lr: Tensor, params: list[Tensor], grads: list[Tensor], old: Moments
) -> tuple[list[Tensor], Moments]:
    """Gradient descent with momentum: v <- momentum v + g, p <- p - lr v."""
    rate = no_fuse(lr)
    velocity = [v * momentum + g for v, g in zip(old.mean, grads, strict=True)]
    updated = [p - v * broadcast(rate, p) for p, v in zip(params, velocity, strict=True)]
    return updated, Moments(velocity, old.square, old.updates + 1.0)


def _adam(
    adam: Optimizer, lr: Tensor, params: list[Tensor], grads: list[Tensor], old: Moments
) -> tuple[list[Tensor], Moments]:
    """Kingma & Ba 2015, algorithm 1."""
    first, second = adam.betas
    count = old.updates + 1.0
    # m/(1 - b1^t) / (sqrt(v/(1 - b2^t)) + eps), with both corrections as scalars
    root = torch.sqrt(1.0 - second**count)
    rate, floor = no_fuse(lr * root / (1.0 - first**count)), no_fuse(adam.eps * root)
    mean = [torch.lerp(m, g, 1.0 - first) for m, g in zip(old.mean, grads, strict=True)]
    square = [torch.lerp(v, g * g, 1.0 - second) for v, g in zip(old.square, grads, strict=True)]
    updated = [
        p - m / (v.sqrt() + broadcast(floor, p)) * broadcast(rate, p)
        for p, m, v in zip(params, mean, square, strict=True)
    ]
    return updated, Moments(mean, square, count)
