import math

import pytest
import torch

from unweave.ops.partial_labels import (
    binary_sample,
    cross_entropy,
    marginal_bound,
    one_hot,
    squared_hinge,
    unlabelled_loss,
    zero_one_loss,
)

LOGITS = torch.tensor([[0.0, 0.0], [2.0, 0.0], [0.0, 5.0]], dtype=torch.float64)


def test_the_marginal_bound_by_hand():
    """0.25 * 4 + 0.75 * 8 minus the entropy; for a certain class it is the bound of that class."""
    bound, q = torch.tensor([[4.0, 8.0], [4.0, 8.0]]), torch.tensor([[0.25, 0.75], [1.0, 1e-30]])
    entropy = -(0.25 * math.log(0.25) + 0.75 * math.log(0.75))
    assert marginal_bound(bound, q.log()).tolist() == pytest.approx([7.0 - entropy, 4.0])


def test_the_marginal_bound_is_least_at_the_posterior():
    """Its minimum over q is -log sum_y exp(-L(x, y)), where q(y) is proportional to exp(-L(x, y))."""
    bound = torch.tensor([[3.0, 5.0, 4.0]])
    best = marginal_bound(bound, (-bound).log_softmax(1))
    torch.testing.assert_close(best, -(-bound).logsumexp(1))
    assert marginal_bound(bound, torch.zeros(1, 3).log_softmax(1)) > best


def test_one_hot():
    found = one_hot(torch.tensor([2, 0]), torch.zeros(2, 3, dtype=torch.float64))
    assert found.tolist() == [[0, 0, 1], [1, 0, 0]] and found.dtype == torch.float64


def test_binary_samples_have_the_grey_value_as_mean():
    grey = torch.tensor([0.0, 0.3, 1.0]).expand(20_000, 3)
    drawn = binary_sample(grey, torch.rand(20_000, 3, generator=torch.Generator().manual_seed(0)))
    assert set(drawn.flatten().tolist()) == {0.0, 1.0}
    assert drawn.mean(0).tolist() == pytest.approx([0.0, 0.3, 1.0], abs=0.015)


def test_losses_of_a_support_vector_machine():
    score, sign = torch.tensor([[2.0, 0.5, -1.0]]), torch.tensor([[1.0, 1.0, 1.0]])
    assert squared_hinge(score, sign).tolist() == [[0.0, 0.25, 4.0]]
    assert squared_hinge(score, -sign).tolist() == [[9.0, 2.25, 0.0]]
    assert unlabelled_loss(score)[0].tolist() == pytest.approx([math.exp(-12.0), math.exp(-0.75), math.exp(-3.0)])


def test_cross_entropy_by_hand_and_unknown_labels():
    found = cross_entropy(LOGITS, torch.tensor([1, 0, -1]))
    chance = torch.tensor([0.5, torch.tensor(2.0).exp() / (1 + torch.tensor(2.0).exp()), 1.0])
    torch.testing.assert_close(found, -chance.double().log(), rtol=1e-6, atol=1e-7)


def test_an_unknown_label_has_no_gradient():
    logits = LOGITS.clone().requires_grad_()
    (slope,) = torch.autograd.grad(cross_entropy(logits, torch.tensor([1, 0, -1])).sum(), logits)
    assert slope[2].abs().max() == 0 and slope[:2].abs().min() > 0


def test_zero_one_loss():
    assert zero_one_loss(LOGITS, torch.tensor([0, 1, 1])).tolist() == [0.0, 1.0, 0.0]
    assert zero_one_loss(LOGITS, torch.tensor([-1, -1, -1])).sum() == 0


def test_for_many_replicas_at_once():
    logits, labels = torch.randn(4, 6, 3), torch.randint(-1, 3, (4, 6))
    together = torch.vmap(cross_entropy)(logits, labels)
    for k in range(4):
        torch.testing.assert_close(together[k], cross_entropy(logits[k], labels[k]))
    assert together[labels < 0].tolist() == pytest.approx([0.0] * int((labels < 0).sum()))
