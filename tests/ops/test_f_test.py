"""The F statistic of two classes by hand and by scipy."""

import numpy as np
import pytest
import torch
from scipy import stats

from unweave.ops.f_test import best_probabilities, class_pairs


def test_two_classes_by_hand():
    """Members 1, 2, 3 and 5, 6, 7: means 2 and 6, between 3 * 4 + 3 * 4 = 24, within 2 + 2, F = 24 / (4 / 4) = 24."""
    z_BGZ = torch.tensor([[[1.0], [2.0], [3.0]], [[5.0], [6.0], [7.0]]], dtype=torch.float64)
    pairs = class_pairs(z_BGZ)
    assert pairs.between_PZ.item() == pytest.approx(24 / 28) and pairs.within_PZ.item() == pytest.approx(4 / 28)
    assert (pairs.first_P.item(), pairs.second_P.item()) == (0, 1)
    assert (4 * pairs.between_PZ / pairs.within_PZ).item() == pytest.approx(24.0)  # F = between / (within / (2G - 2))
    np.testing.assert_allclose(best_probabilities(pairs, 3, 1), [[stats.f.cdf(24.0, 1, 4)]], rtol=1e-9)


def test_every_pair_and_coordinate_is_scipys_analysis_of_variance():
    z_BGZ = torch.from_numpy(np.random.default_rng(0).normal(size=(5, 4, 3)))
    z_BGZ[2] += 1.5
    pairs = class_pairs(z_BGZ)
    found = best_probabilities(pairs, 4, 3)
    assert found.shape == pairs.between_PZ.shape == (10, 3)
    assert torch.equal(best_probabilities(pairs, 4, 2), found[:, :2])
    for p, (i, j) in enumerate(zip(pairs.first_P, pairs.second_P, strict=True)):
        f, p_value = stats.f_oneway(z_BGZ[i], z_BGZ[j])
        np.testing.assert_allclose(found[p], np.sort(1 - p_value)[::-1], rtol=1e-8)
        np.testing.assert_allclose(found[p], np.sort(stats.f.cdf(f, 1, 6))[::-1], rtol=1e-8)


def test_gradient_of_the_loss_and_its_extremes():
    z = torch.from_numpy(np.random.default_rng(1).normal(size=(3, 3, 2))).requires_grad_()
    assert torch.autograd.gradcheck(lambda z: best_probabilities(class_pairs(z), 3, 2).log(), (z,))
    for extreme in (torch.zeros(3, 3, 2), torch.arange(3.0)[:, None, None].expand(3, 3, 2).clone()):
        point = extreme.requires_grad_()  # all one point; far apart without any spread
        loss = best_probabilities(class_pairs(point), 3, 2).log().sum()
        (grad,) = torch.autograd.grad(loss, point)
        assert loss.isfinite() and grad.isfinite().all()
