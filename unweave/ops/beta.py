"""The regularised incomplete beta function and its derivative, which torch does not have."""

import math
from typing import Any

import torch
from torch import Tensor

_TERMS = 32  # of the continued fraction: 1e-9 in double precision for a from 0.5 and b up to 2000


def betainc(a: float, b: float, x: Tensor, rest: Tensor | None = None) -> Tensor:
    """Return I_x(a, b), the probability that a Beta(a, b) variable is below x; x in 0..1, elementwise.

    `rest` is 1 - x, if it is known more precisely than by subtraction: the derivative near x = 1 depends on it.
    """
    return _Betainc.apply(x, 1.0 - x if rest is None else rest, float(a), float(b))  # type: ignore[no-any-return]


class _Betainc(torch.autograd.Function):
    """Continued fraction with its gradient in closed form."""

    generate_vmap_rule = True

    @staticmethod
    def forward(x: Tensor, rest: Tensor, a: float, b: float) -> Tensor:
        return _fraction(x, rest, a, b)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor, Tensor, float, float], output: Tensor) -> None:
        x, rest, ctx.a, ctx.b = inputs
        ctx.save_for_backward(x, rest)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, None, None, None]:
        (x, rest), a, b = ctx.saved_tensors, ctx.a, ctx.b
        density = ((a - 1.0) * x.log() + (b - 1.0) * rest.log() - _log_beta(a, b)).exp()
        return grads[0] * density, None, None, None


def _fraction(x: Tensor, rest: Tensor, a: float, b: float) -> Tensor:
    """Evaluate the continued fraction of DLMF 8.17.22, from its last term.

    It converges fast below the mean; above it I_x(a, b) = 1 - I_(1-x)(b, a) is used.
    """
    above = x > (a + 1.0) / (a + b + 2.0)
    y = torch.where(above, rest, x)
    value = torch.ones_like(y)
    for k in range(_TERMS, 0, -1):
        value = 1.0 + torch.where(above, _coefficient(k, b, a) * y, _coefficient(k, a, b) * y) / value
    front = (a * x.log() + b * rest.log() - _log_beta(a, b)).exp() / value
    return torch.where(above, 1.0 - front / b, front / a)


def _coefficient(k: int, a: float, b: float) -> float:
    m = k // 2
    if k % 2:
        return -(a + m) * (a + b + m) / ((a + 2 * m) * (a + 2 * m + 1))
    return m * (b - m) / ((a + 2 * m - 1) * (a + 2 * m))


def _log_beta(a: float, b: float) -> float:
    return math.lgamma(a) + math.lgamma(b) - math.lgamma(a + b)
