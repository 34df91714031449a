import itertools

import pytest
import torch

from unweave.ops.separation import repulsion


@pytest.mark.parametrize("eta", [0.0, 0.7, 2.0, 10.0])
def test_by_brute_force(eta):
    points = torch.randn(7, 3, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    expected = sum(max(0.0, eta - float(torch.dist(a, b))) for a, b in itertools.combinations(points, 2))
    assert repulsion(points, torch.tensor(eta)).item() == pytest.approx(expected)


def test_gradient_steps_separate_points():
    points = torch.randn(5, 2, generator=torch.Generator().manual_seed(1), requires_grad=True)
    for _ in range(200):
        (slope,) = torch.autograd.grad(repulsion(points, torch.tensor(3.0)), points)
        points = (points - 0.05 * slope).detach().requires_grad_()
    distances = torch.pdist(points)
    assert distances.min() > 2.8 and distances.max() < 8.0  # beyond eta nothing pushes
