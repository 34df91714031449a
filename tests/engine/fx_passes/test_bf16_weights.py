"""Copies of weights in bfloat16 change what a step reads, not what it computes."""

import torch
from torch.fx.experimental.proxy_tensor import make_fx

from unweave.engine.fx_passes.bf16_weights import carry_bf16_weights, is_wide, update_copies


def step(flat):
    """Read a weight twice in bfloat16, once transposed, then update it; a second weight is not updated."""
    weight, fixed, x = flat[0], flat[1], flat[2]
    rounded = weight.detach().bfloat16(), weight.detach().t().bfloat16(), fixed.t().bfloat16()
    y = (x.bfloat16() @ rounded[0] @ rounded[1]).float() + (x.bfloat16() @ rounded[2]).float().sum()
    weight.copy_(weight - 0.1 * weight * y.mean())
    x.copy_(y)
    return ()


def inputs():
    torch.manual_seed(0)
    return [torch.randn(4, 3), torch.randn(4, 4), torch.randn(2, 4)]


def casts(module):
    """Return the number of casts to bfloat16 in the recorded step."""
    return sum(
        node.target is torch.ops.aten._to_copy.default and node.kwargs.get("dtype") is torch.bfloat16
        for node in module.graph.nodes
    )


def test_results_are_equal_without_the_casts():
    plain, copied = inputs(), inputs()
    copied += [copied[0].bfloat16(), copied[1].bfloat16()]
    recorded, carried = make_fx(step)(inputs()), make_fx(step)([t.clone() for t in copied])
    before = casts(carried)
    carry_bf16_weights(carried, {0: 3, 1: 4})
    assert casts(carried) == before - 3 + 1  # three casts that read are removed, one that writes is added
    for _ in range(5):
        recorded(plain)
        carried(copied)
        for one, other in zip(plain, copied, strict=False):
            assert torch.equal(one, other)
        assert torch.equal(copied[3], copied[0].bfloat16()) and torch.equal(copied[4], copied[1].bfloat16())


def test_copies_are_updated_with_their_weights():
    tensors = [torch.randn(3), torch.zeros(3, dtype=torch.bfloat16)]
    update_copies(tensors, {0: 1})
    assert torch.equal(tensors[1], tensors[0].bfloat16())


def test_only_wide_float32_weights_have_a_copy():
    assert is_wide(torch.empty(1 << 20, device="meta")) and not is_wide(torch.empty(1000, device="meta"))
    assert not is_wide(torch.empty(1 << 20, device="meta", dtype=torch.float64))
