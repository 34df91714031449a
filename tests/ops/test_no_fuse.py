"""no_fuse returns equal values, also in a recorded function."""

import torch
from torch.fx.experimental.proxy_tensor import make_fx

from unweave.ops.no_fuse import no_fuse


def test_the_same_numbers():
    values = torch.arange(6.0).reshape(2, 3)
    assert torch.equal(no_fuse(values), values)
    assert torch.equal(make_fx(lambda t: no_fuse(t) * 2)(values)(values + 1), 2 * values + 2)
    assert no_fuse(torch.tensor(3)) == 3
