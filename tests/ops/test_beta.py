"""The incomplete beta function against scipy and its derivative against differences, with and without vmap."""

import numpy as np
import pytest
import torch
from scipy import special, stats

from unweave.ops.beta import betainc

INSIDE = np.concatenate([10.0 ** np.arange(-37, -1), np.linspace(0.01, 0.99, 99), 1 - 10.0 ** -np.arange(2, 9.0)])


@pytest.mark.parametrize("b", [0.5, 1.0, 2.0, 4.0, 9.5, 49.0, 499.0])
@pytest.mark.parametrize("a", [0.5, 1.0, 2.5])
def test_values_are_those_of_scipy(a, b):
    x = torch.from_numpy(INSIDE).requires_grad_()
    found = betainc(a, b, x)
    np.testing.assert_allclose(found.detach(), special.betainc(a, b, INSIDE), rtol=1e-9)
    (density,) = torch.autograd.grad(found.sum(), x)
    np.testing.assert_allclose(density, stats.beta.pdf(INSIDE, a, b), rtol=1e-9)
    x = x.detach()
    single = betainc(a, b, x.float())
    expected = special.betainc(a, b, x.float().double().numpy())
    assert single.dtype == torch.float32 and np.allclose(single, expected, rtol=3e-4, atol=1e-37)
    assert betainc(a, b, torch.tensor([0.0, 1.0], dtype=torch.float64)).tolist() == [0.0, 1.0]


def test_values_near_one_keep_their_precision():
    """In single precision 1 - x keeps three digits of 1e-4; given as it is, the derivative keeps seven."""
    rest = torch.tensor([1.2345678e-4])
    x = (1 - rest).requires_grad_()
    (known,) = torch.autograd.grad(betainc(0.5, 4.0, x, rest).sum(), x)
    expected = stats.beta.pdf(1 - rest.double().numpy(), 0.5, 4.0)
    np.testing.assert_allclose(known, expected, rtol=1e-5)


@pytest.mark.parametrize(("a", "b"), [(0.5, 1.0), (0.5, 4.0), (2.5, 0.5), (3.0, 7.0)])
def test_derivative(a, b):
    x = torch.linspace(0.02, 0.98, 25, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda x: betainc(a, b, x), (x,))
    step = 1e-6
    numerical = (betainc(a, b, x + step) - betainc(a, b, x - step)) / (2 * step)
    (analytic,) = torch.autograd.grad(betainc(a, b, x).sum(), x)
    torch.testing.assert_close(analytic, numerical.detach(), rtol=1e-6, atol=1e-8)


def test_vmap_gives_the_same_values():
    x = torch.rand(3, 7, dtype=torch.float64)
    grad = torch.func.grad(lambda row: betainc(0.5, 4.0, row).log().sum())
    torch.testing.assert_close(torch.vmap(grad)(x), torch.stack([grad(row) for row in x]))
    torch.testing.assert_close(torch.vmap(lambda row: betainc(0.5, 4.0, row))(x), betainc(0.5, 4.0, x))
