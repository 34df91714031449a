import math

import pytest
import torch

from unweave.ops.mmd import square_distances
from unweave.ops.stein import median_bandwidth, stein_direction, stein_surrogate


@pytest.fixture
def z_BZ():
    return torch.randn(6, 2, generator=torch.Generator().manual_seed(0), dtype=torch.float64)


def test_direction_against_loops_and_autograd(z_BZ):
    """Liu & Wang 2016, eq. 8, the kernel's gradient taken by autograd, code by code."""
    width = torch.tensor(1.7, dtype=torch.float64)
    expected = torch.zeros_like(z_BZ)
    for i in range(6):
        for j in range(6):
            other = z_BZ[j].clone().requires_grad_()
            kernel = (-(other - z_BZ[i]).square().sum() / width).exp()
            expected[i] += (kernel.detach() * -z_BZ[j] + torch.autograd.grad(kernel, other)[0]) / 6
    torch.testing.assert_close(stein_direction(z_BZ, -z_BZ, width), expected)


@pytest.mark.parametrize("shift", [0.0, 1.5])
def test_direction_of_shifted_gaussian_in_closed_form(shift):
    """Of N(m, 1) towards N(0, 1) it is -m E k(z, .), by Stein's identity: zero at equality."""
    draw = torch.Generator().manual_seed(1)
    z_BZ = shift + torch.randn(3000, 2, generator=draw, dtype=torch.float64)
    width = 2.0
    smooth_B = width / (width + 2) * (-(z_BZ - shift).square().sum(1) / (width + 2)).exp()
    expected = (-shift * smooth_B).unsqueeze(1).expand(-1, 2)
    found = stein_direction(z_BZ, -z_BZ, torch.tensor(width, dtype=torch.float64))
    assert (found - expected).abs().max() < 0.06


def test_median_bandwidth(z_BZ):
    pairs = sorted(float((z_BZ[i] - z_BZ[j]).square().sum()) for i in range(6) for j in range(i))
    assert median_bandwidth(square_distances(z_BZ, z_BZ)).item() == pytest.approx(pairs[7] / math.log(6))
    assert median_bandwidth(torch.zeros(6, 6)) > 0


def test_surrogates_gradient_is_the_direction_held_fixed(z_BZ):
    z_BZ.requires_grad_()
    width = median_bandwidth(square_distances(z_BZ, z_BZ)).detach()
    gradient = torch.autograd.grad(stein_surrogate(z_BZ), z_BZ)[0]
    torch.testing.assert_close(gradient, -stein_direction(z_BZ, -z_BZ, width).detach() / 6)


def test_codes_that_follow_the_direction_approach_the_prior():
    z_BZ = 4.0 + 0.3 * torch.randn(100, 2, generator=torch.Generator().manual_seed(2))
    for _ in range(300):
        z_BZ.requires_grad_()
        gradient = torch.autograd.grad(stein_surrogate(z_BZ), z_BZ)[0]
        z_BZ = (z_BZ - 30.0 * gradient).detach()
    assert z_BZ.mean(0).abs().max() < 0.1
    assert z_BZ.std(0).tolist() == pytest.approx([1.0, 1.0], abs=0.15)
