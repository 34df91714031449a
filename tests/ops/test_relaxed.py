import torch

from unweave.ops.relaxed import straight_through

LOGITS = torch.tensor([0.3, -1.0, 2.0, 0.0], dtype=torch.float64)


def test_classes_are_drawn_by_their_probability_at_any_temperature():
    uniform = torch.rand((20_000, 4), generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    cold, warm = (straight_through(LOGITS, uniform, torch.tensor(t)) for t in (0.1, 5.0))
    torch.testing.assert_close(cold, warm)
    assert ((cold.abs() < 1e-12) | ((cold - 1).abs() < 1e-12)).all()
    torch.testing.assert_close(cold.sum(1), torch.ones(20_000).double())
    torch.testing.assert_close(cold.mean(0), LOGITS.softmax(0), atol=0.01, rtol=0.0)


def test_the_gradient_is_that_of_the_softmax():
    uniform = torch.tensor([0.2, 0.9, 0.5, 0.7], dtype=torch.float64)
    worth = torch.tensor([1.0, -2.0, 0.5, 3.0], dtype=torch.float64)
    logits = LOGITS.clone().requires_grad_()
    (found,) = torch.autograd.grad((straight_through(logits, uniform, torch.tensor(0.7)) * worth).sum(), logits)
    soft = ((logits - torch.log(-torch.log(uniform))) / 0.7).softmax(0)
    (expected,) = torch.autograd.grad((soft * worth).sum(), logits)
    torch.testing.assert_close(found, expected)


def test_the_ends_of_the_uniform_numbers():
    uniform = torch.tensor([[0.0, 1.0 - 2.0**-24, 0.5, 0.0], [0.0] * 4])
    logits = LOGITS.float().requires_grad_()
    drawn = straight_through(logits, uniform, torch.tensor(0.01))
    drawn[:, 0].sum().backward()
    assert drawn.isfinite().all() and logits.grad.isfinite().all() and drawn.argmax(1).tolist() == [1, 2]
