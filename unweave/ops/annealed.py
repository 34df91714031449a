"""Annealed importance sampling of an expectation over a normal distribution, such as the marginal likelihood p(x).

Neal 2001, with Hamiltonian transitions as in Wu et al. 2017, "On the Quantitative Analysis of Decoder-Based Generative
Models". The mean of the weights is unbiased, so the expectation of its log is a lower bound, which is tighter for
longer chains.

Shape letters: B chains, Z coordinates, T temperatures.
"""

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor

from unweave.ops.noise import fold, random_normal, random_uniform

LogFactor = Callable[[Tensor], Tensor]  # log f [B] at the positions [B, Z] of the chains
TARGET_ACCEPTANCE = 0.65  # acceptance rate at which Hamiltonian Monte Carlo is most efficient


class _Position(NamedTuple):
    """Positions of the chains."""

    z_BZ: Tensor
    factor_B: Tensor  # log f(z)
    gradient_BZ: Tensor  # of log f


def temperatures(count: int) -> Tensor:
    """Return the temperatures [T + 1] from 0 to 1, densest near 0, where the target changes most."""
    return torch.linspace(0.0, 1.0, count + 1, dtype=torch.float64) ** 2


def annealed_log_weights(
    log_factor: LogFactor,
    shape: tuple[int, int],
    key: Tensor,
    *,
    steps: int = 200,
    leapfrog_steps: int = 5,
    step_size: float = 0.1,
) -> Tensor:
    """Return log-weights [B]: the mean of their exponentials estimates E[f(z)] for z ~ N(0, I).

    Each chain may have its own f. Each of the `steps` temperatures has one transition. The size of its leapfrog steps,
    initially `step_size`, is adapted to the acceptance rate of all chains; adapting it per chain would bias weights.
    """
    position = _position(log_factor, random_normal(fold(key, "start"), shape))
    weight_B, size = torch.zeros_like(position.factor_B), torch.full_like(position.factor_B[0], step_size)
    betas = temperatures(steps).tolist()
    for step in range(1, steps + 1):
        weight_B = weight_B + (betas[step] - betas[step - 1]) * position.factor_B
        position, accepted_B = _transition(log_factor, position, betas[step], size, leapfrog_steps, fold(key, step))
        size = size * torch.exp(0.2 * (accepted_B.to(size.dtype).mean() - TARGET_ACCEPTANCE))
    return weight_B


def _position(log_factor: LogFactor, z_BZ: Tensor) -> _Position:
    with torch.enable_grad():
        z_BZ = z_BZ.detach().requires_grad_()
        factor_B = log_factor(z_BZ)
        (gradient_BZ,) = torch.autograd.grad(factor_B.sum(), z_BZ)
    return _Position(z_BZ.detach(), factor_B.detach(), gradient_BZ)


def _transition(
    log_factor: LogFactor, position: _Position, beta: float, size: Tensor, leapfrog_steps: int, key: Tensor
) -> tuple[_Position, Tensor]:
    """Run one Hamiltonian transition that leaves N(z; 0, I) f(z)^beta invariant; return which chains accepted it."""
    momentum_BZ = random_normal(fold(key, "speed"), tuple(position.z_BZ.shape))
    energy_B, end = _energy(position, momentum_BZ, beta), position
    for _ in range(leapfrog_steps):
        momentum_BZ = momentum_BZ + 0.5 * size * (beta * end.gradient_BZ - end.z_BZ)
        end = _position(log_factor, end.z_BZ + size * momentum_BZ)
        momentum_BZ = momentum_BZ + 0.5 * size * (beta * end.gradient_BZ - end.z_BZ)
    gain_B = energy_B - _energy(end, momentum_BZ, beta)
    accepted_B = random_uniform(fold(key, "take"), (len(gain_B),)) < torch.exp(gain_B)  # False for NaN
    kept = [
        torch.where(accepted_B.view(-1, *[1] * (new.dim() - 1)), new, old)
        for new, old in zip(end, position, strict=True)
    ]
    return _Position(*kept), accepted_B


def _energy(position: _Position, momentum_BZ: Tensor, beta: float) -> Tensor:
    return 0.5 * (position.z_BZ.square() + momentum_BZ.square()).sum(1) - beta * position.factor_B
