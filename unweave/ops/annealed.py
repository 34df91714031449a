"""An integral over a normal distribution by annealed importance sampling: the evidence p(x) of a model, above all.

Neal 2001, with Hamiltonian moves as in Wu et al. 2017, "On the Quantitative Analysis of Decoder-Based Generative
Models". Chains start from N(0, I) and are led to where the integrand is large. The mean of their weights is the
integral without bias; so the log of that mean is too low in expectation, by less the longer the chains are.

Shape letters: B chains, Z coordinates, T temperatures.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor

from unweave.ops.noise import fold, random_normal, random_uniform

LogFactor = Callable[[Tensor], Tensor]  # log f [B] of places [B, Z], one of each chain
ACCEPTED = 0.65  # the share of moves taken at which Hamiltonian chains go furthest for their work


class _Place(NamedTuple):
    """Where the chains are."""

    z_BZ: Tensor
    factor_B: Tensor  # log f(z)
    slope_BZ: Tensor  # its gradient


def temperatures(count: int) -> Tensor:
    """[T + 1] from 0 to 1, closest together at 0, where chains still are in places f all but rules out."""
    return torch.linspace(0.0, 1.0, count + 1, dtype=torch.float64) ** 2


def annealed_log_weights(
    log_factor: LogFactor, shape: tuple[int, int], key: Tensor, *, steps: int = 200, leaps: int = 5, stride: float = 0.1
) -> Tensor:
    """Log-weights [B]: the mean of their exponentials is an estimate of E[f(z)] for z ~ N(0, I).

    Every chain may have an f of its own. Each of the `steps` temperatures has one move of `leaps` leaps. How far a leap
    goes, `stride` at first, follows from how many of all chains took the last move: if each one followed its own moves,
    the weights would be too low.
    """
    place = _place(log_factor, random_normal(fold(key, "start"), shape))
    weight_B, leap = torch.zeros_like(place.factor_B), torch.full_like(place.factor_B[0], stride)
    betas = temperatures(steps).tolist()
    for step in range(1, steps + 1):
        weight_B = weight_B + (betas[step] - betas[step - 1]) * place.factor_B
        place, moved_B = _move(log_factor, place, betas[step], leap, leaps, fold(key, step))
        leap = leap * torch.exp(0.2 * (moved_B.to(leap.dtype).mean() - ACCEPTED))
    return weight_B


def _place(log_factor: LogFactor, z_BZ: Tensor) -> _Place:
    with torch.enable_grad():
        z_BZ = z_BZ.detach().requires_grad_()
        factor_B = log_factor(z_BZ)
        (slope_BZ,) = torch.autograd.grad(factor_B.sum(), z_BZ)
    return _Place(z_BZ.detach(), factor_B.detach(), slope_BZ)


def _move(
    log_factor: LogFactor, place: _Place, beta: float, leap: Tensor, leaps: int, key: Tensor
) -> tuple[_Place, Tensor]:
    """One Hamiltonian move that leaves N(z; 0, I) f(z)^beta as it is, and which chains took it."""
    speed_BZ = random_normal(fold(key, "speed"), tuple(place.z_BZ.shape))
    energy_B, end = _energy(place, speed_BZ, beta), place
    for _ in range(leaps):
        speed_BZ = speed_BZ + 0.5 * leap * (beta * end.slope_BZ - end.z_BZ)
        end = _place(log_factor, end.z_BZ + leap * speed_BZ)
        speed_BZ = speed_BZ + 0.5 * leap * (beta * end.slope_BZ - end.z_BZ)
    gained_B = energy_B - _energy(end, speed_BZ, beta)
    taken_B = random_uniform(fold(key, "take"), (len(gained_B),)) < torch.exp(gained_B)  # not if that is no number
    kept = [
        torch.where(taken_B.view(-1, *[1] * (new.dim() - 1)), new, old) for new, old in zip(end, place, strict=True)
    ]
    return _Place(*kept), taken_B


def _energy(place: _Place, speed_BZ: Tensor, beta: float) -> Tensor:
    return 0.5 * (place.z_BZ.square() + speed_BZ.square()).sum(1) - beta * place.factor_B
