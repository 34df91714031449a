"""The product of the transposed factors replaces a transposed product."""

import pytest
import torch
from torch.fx.experimental.proxy_tensor import make_fx

from unweave.engine.fx_passes.transpose_matmul import transpose_matmuls

aten = torch.ops.aten


def targets(module):
    return [node.target for node in module.graph.nodes if node.op == "call_function"]


def rewritten(step, *inputs):
    module = make_fx(step)(*inputs)
    transpose_matmuls(module)
    module.graph.lint()
    assert torch.equal(module(*inputs), step(*inputs))
    return targets(module)


@pytest.mark.parametrize("shapes", [((3, 4), (4, 5)), ((2, 3, 4), (2, 4, 5))])
def test_a_transposed_product_becomes_the_product_of_the_transposed(shapes):
    a, b = (torch.arange(float(torch.Size(s).numel())).reshape(s) for s in shapes)  # integers: sums are exact
    found = rewritten(lambda a, b: (a @ b).transpose(-2, -1) * 2.0, a, b)
    last = next(n for n, target in enumerate(found) if target in (aten.mm.default, aten.bmm.default))
    assert aten.transpose.int not in found[last:] and aten.t.default not in found[last:]


def test_casts_are_kept():
    a, b = torch.arange(12.0).reshape(3, 4), torch.arange(8.0).reshape(4, 2)
    found = rewritten(lambda a, b: (a @ b).to(torch.float64).t() + 1.0, a, b)
    assert found.count(aten._to_copy.default) == 1 and found[-1] is aten.add.Tensor


def test_a_product_with_a_second_use_is_not_changed():
    a, b = torch.arange(12.0).reshape(3, 4), torch.arange(12.0).reshape(4, 3)

    def step(a, b):
        product = a @ b
        return product.t() + product.sin()

    assert rewritten(step, a, b) == targets(make_fx(step)(a, b))


def test_a_transpose_of_other_axes_is_not_changed():
    a, b = torch.arange(24.0).reshape(2, 3, 4), torch.arange(40.0).reshape(2, 4, 5)

    def step(a, b):
        return torch.bmm(a, b).transpose(0, 1) + 1.0

    assert rewritten(step, a, b) == targets(make_fx(step)(a, b))
