"""Settled numbers are the numbers, also when they are mapped over or recorded."""

import torch
from torch.fx.experimental.proxy_tensor import make_fx

from unweave.ops.settled import settled


def test_the_same_numbers():
    values = torch.arange(6.0).reshape(2, 3)
    assert torch.equal(settled(values), values)
    assert torch.equal(torch.vmap(lambda row: settled(2 * row) + 1, in_dims=1, out_dims=1)(values), 2 * values + 1)
    assert torch.equal(make_fx(lambda t: settled(t) * 2)(values)(values + 1), 2 * values + 2)
    assert settled(torch.tensor(3)) == 3
