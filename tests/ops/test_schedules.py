import pytest
import torch

from unweave.ops.schedules import linear


def along(steps, *arguments):
    return [linear(torch.tensor(s), *map(torch.tensor, arguments)).item() for s in steps]


def test_a_line_from_start_to_end_and_flat_afterwards():
    assert along([0, 1, 5, 10, 11, 10**9], 2.0, 4.0, 10.0) == pytest.approx([2.0, 2.2, 3.0, 4.0, 4.0, 4.0])


def test_constant_until_the_first_step():
    assert along([0, 5, 6, 7, 8, 100], 1.0, 0.0, 2.0, 5.0) == pytest.approx([1.0, 1.0, 0.5, 0.0, 0.0, 0.0])


def test_a_constant_is_exact_at_every_step():
    assert set(along([0, 1, 7, 10**6, 2**40], 0.1, 0.1, 1.0)) == {torch.tensor(0.1).item()}


def test_rows_have_schedules_of_their_own():
    start, end, steps = torch.tensor([0.0, 1.0]), torch.tensor([1.0, 1.0]), torch.tensor([4.0, 1.0])
    assert linear(torch.tensor(1), start, end, steps).tolist() == [0.25, 1.0]


def test_gradients_of_both_ends():
    end = torch.tensor(3.0, requires_grad=True)
    value = linear(torch.tensor(1), torch.tensor(0.0), end, torch.tensor(4.0))
    assert torch.autograd.grad(value, end)[0].item() == 0.25
