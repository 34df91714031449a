import pytest
import torch

from unweave.ops.labels import cross_entropy, mistakes

LOGITS = torch.tensor([[0.0, 0.0], [2.0, 0.0], [0.0, 5.0]], dtype=torch.float64)


def test_cross_entropy_by_hand_and_unknown_labels():
    found = cross_entropy(LOGITS, torch.tensor([1, 0, -1]))
    chance = torch.tensor([0.5, torch.tensor(2.0).exp() / (1 + torch.tensor(2.0).exp()), 1.0])
    torch.testing.assert_close(found, -chance.double().log(), rtol=1e-6, atol=1e-7)


def test_an_unknown_label_has_no_gradient():
    logits = LOGITS.clone().requires_grad_()
    (slope,) = torch.autograd.grad(cross_entropy(logits, torch.tensor([1, 0, -1])).sum(), logits)
    assert slope[2].abs().max() == 0 and slope[:2].abs().min() > 0


def test_mistakes():
    assert mistakes(LOGITS, torch.tensor([0, 1, 1])).tolist() == [0.0, 1.0, 0.0]
    assert mistakes(LOGITS, torch.tensor([-1, -1, -1])).sum() == 0


def test_for_many_replicas_at_once():
    logits, labels = torch.randn(4, 6, 3), torch.randint(-1, 3, (4, 6))
    together = torch.vmap(cross_entropy)(logits, labels)
    for k in range(4):
        torch.testing.assert_close(together[k], cross_entropy(logits[k], labels[k]))
    assert together[labels < 0].tolist() == pytest.approx([0.0] * int((labels < 0).sum()))
