import math

import pytest
import torch
from scipy.integrate import quad

from unweave.ops.mmd import KERNELS, SCALES, inverse_multiquadratic, rbf, square_distances, unbiased_mmd


@pytest.fixture
def samples():
    draw = torch.Generator().manual_seed(0)
    return [torch.randn(n, 3, generator=draw, dtype=torch.float64) * scale for n, scale in ((5, 1.0), (7, 2.0))]


def by_hand(kernel, a, b, latents):
    square = sum((float(i) - float(j)) ** 2 for i, j in zip(a, b))
    if kernel == "rbf":
        return math.exp(-square / latents**2)
    return sum(2 * latents * s / (2 * latents * s + square) for s in SCALES) / len(SCALES)


@pytest.mark.parametrize("kernel", list(KERNELS))
def test_estimator_against_loops(samples, kernel):
    x, y = samples
    xx = [by_hand(kernel, x[i], x[j], 3) for i in range(5) for j in range(5) if i != j]
    yy = [by_hand(kernel, y[i], y[j], 3) for i in range(7) for j in range(7) if i != j]
    xy = [by_hand(kernel, a, b, 3) for a in x for b in y]
    expected = sum(xx) / 20 + sum(yy) / 42 - 2 * sum(xy) / 35
    assert unbiased_mmd(x, y, KERNELS[kernel]).item() == pytest.approx(expected, rel=1e-12)


def test_square_distances_of_close_codes_keep_their_digits():
    x = torch.tensor([[1e6, 0.0], [1e6 + 0.5, 0.0]])
    assert square_distances(x, x).tolist() == [[0.0, 0.25], [0.25, 0.0]]


def expected_kernel(kernel, latents, mean, spread):
    """E k(d) for normal d of this mean and variance in every latent.

    E exp(-d^2 / w) is sqrt(w / (w + 2 s)) exp(-m^2 / (w + 2 s)) per latent, s the variance; C / (C + d^2) is the
    integral over t of exp(-t) exp(-t d^2 / C).
    """

    def bell(width):
        return (width / (width + 2 * spread) * math.exp(-2 * mean**2 / (width + 2 * spread))) ** (latents / 2)

    if kernel == "rbf":
        return bell(float(latents**2))
    each = [quad(lambda t, c=2.0 * latents * s: math.exp(-t) * bell(c / t), 0, math.inf)[0] for s in SCALES]
    return sum(each) / len(SCALES)


@pytest.mark.parametrize("kernel", list(KERNELS))
@pytest.mark.parametrize(("shift", "scale"), [(0.0, 1.0), (1.0, 1.0), (0.5, 2.0)])
def test_gaussians_of_known_distance(kernel, shift, scale):
    """N(m, v) in every latent from N(0, 1)."""
    draw = torch.Generator().manual_seed(1)
    latents, var = 2, scale**2

    def expected(mean, spread):
        return expected_kernel(kernel, latents, mean, spread)

    exact = expected(0, 2 * var) + expected(0, 2.0) - 2 * expected(shift, var + 1)
    pairs = torch.randn(500, 2, 60, latents, generator=draw)
    found = torch.stack([unbiased_mmd(shift + scale * x, y, KERNELS[kernel]) for x, y in pairs])
    assert (found.mean() - exact).abs() < 4 * found.std() / math.sqrt(500) < 0.015
    assert (exact == 0.0) == (shift == 0.0 and scale == 1.0)


@pytest.mark.parametrize("kernel", list(KERNELS))
def test_unbiased_at_equality(kernel):
    """The mean over many small samples of one law is zero, which an estimate with its diagonal never is."""
    draw = torch.Generator().manual_seed(2)
    values = [unbiased_mmd(*torch.randn(2, 8, 3, generator=draw), KERNELS[kernel]) for _ in range(1000)]
    values = torch.stack(values)
    assert values.mean().abs() < 4 * values.std() / math.sqrt(1000)
    assert values.min() < 0


def test_kernels_at_zero_and_far():
    ends = torch.tensor([0.0, 1e12])
    assert rbf(ends, 3).tolist() == [1.0, 0.0]
    assert inverse_multiquadratic(ends, 3).tolist() == pytest.approx([1.0, 0.0], abs=1e-6)
