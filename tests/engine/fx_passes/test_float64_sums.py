"""Sums in float64 do not depend on the order of their terms."""

import torch
from torch.fx.experimental.proxy_tensor import make_fx

from unweave.engine.fx_passes.float64_sums import sum_in_float64


def step(x):
    return x.sum(0), x.mean(1), x.logsumexp(1), x.var(0), torch.linalg.vector_norm(x, dim=1), x.amax(0), (x * x).sum()


def test_sums_are_computed_in_float64_and_rounded_once():
    torch.manual_seed(0)
    x = torch.randn(7, 1000) * torch.logspace(-4, 4, 1000)
    module = make_fx(step)(x)
    sum_in_float64(module)
    module.graph.lint()
    for ours, exact, plain in zip(module(x), step(x.double()), step(x), strict=True):
        assert ours.dtype == torch.float32 and ours.shape == plain.shape
        assert torch.equal(ours, exact.float())


def test_sums_do_not_depend_on_the_order():
    torch.manual_seed(0)
    x = torch.randn(3, 4096) * torch.logspace(-3, 3, 4096)
    module = make_fx(lambda x: x.sum(1))(x)
    sum_in_float64(module)
    other = x[:, torch.randperm(4096)]
    assert torch.equal(module(x), module(other)) and not torch.equal(x.sum(1), other.sum(1))


def test_other_dtypes_are_not_changed():
    x = torch.randn(3, 4, dtype=torch.float64)
    module = make_fx(lambda x: (x.sum(0), (x > 0).sum()))(x)
    before = len(module.graph.nodes)
    sum_in_float64(module)
    assert len(module.graph.nodes) == before
