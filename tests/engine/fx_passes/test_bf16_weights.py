"""Halves kept between steps change what a step reads, not what it computes."""

import torch
from torch.fx.experimental.proxy_tensor import make_fx

from unweave.engine.fx_passes.bf16_weights import carry_bf16_weights, is_wide, refresh


def step(flat):
    """Two uses of a weight in half precision, one of them turned round; then it moves. The other one stays."""
    weight, fixed, x = flat[0], flat[1], flat[2]
    halves = weight.detach().bfloat16(), weight.detach().t().bfloat16(), fixed.t().bfloat16()
    y = (x.bfloat16() @ halves[0] @ halves[1]).float() + (x.bfloat16() @ halves[2]).float().sum()
    weight.copy_(weight - 0.1 * weight * y.mean())
    x.copy_(y)
    return ()


def inputs():
    torch.manual_seed(0)
    return [torch.randn(4, 3), torch.randn(4, 4), torch.randn(2, 4)]


def casts(module):
    """Which inputs the recorded step still casts."""
    return sum(
        node.target is torch.ops.aten._to_copy.default and node.kwargs.get("dtype") is torch.bfloat16
        for node in module.graph.nodes
    )


def test_the_same_numbers_without_the_casts():
    plain, told = inputs(), inputs()
    told += [told[0].bfloat16(), told[1].bfloat16()]
    recorded, carried = make_fx(step)(inputs()), make_fx(step)([t.clone() for t in told])
    before = casts(carried)
    carry_bf16_weights(carried, {0: 3, 1: 4})
    assert casts(carried) == before - 3 + 1  # three reads go, one write comes
    for _ in range(5):
        recorded(plain)
        carried(told)
        for one, other in zip(plain, told, strict=False):
            assert torch.equal(one, other)
        assert torch.equal(told[3], told[0].bfloat16()) and torch.equal(told[4], told[1].bfloat16())


def test_halves_follow_weights_that_were_set():
    tensors = [torch.randn(3), torch.zeros(3, dtype=torch.bfloat16)]
    refresh(tensors, {0: 1})
    assert torch.equal(tensors[1], tensors[0].bfloat16())


def test_only_wide_weights_in_full_precision_have_one():
    assert is_wide(torch.empty(1 << 20, device="meta")) and not is_wide(torch.empty(1000, device="meta"))
    assert not is_wide(torch.empty(1 << 20, device="meta", dtype=torch.float64))
