"""Images of colours times layers: the interpreted Triton kernel equals the tensor form."""

from __future__ import annotations

import pytest
import torch
from interpreted import run_interpreted
from torch.func import vmap

from unweave.ops import blend as module
from unweave.ops.blend import blend


def test_the_plain_form_by_hand():
    layers = torch.tensor([[[30, 230]], [[130, 30]]], dtype=torch.uint8)  # two views of one layer and two pixels
    colours = torch.tensor([[[0.5], [1.0]], [[0.5], [2.0]]])
    made = blend(layers, torch.tensor([1, 0]), colours, unit=200.0, zero=30.0)
    torch.testing.assert_close(made, torch.tensor([[[0.25, 0.0], [0.5, 0.0]], [[0.0, 0.5], [0.0, 1.0]]]))


KERNEL = """
import torch
from torch.func import vmap
from unweave.ops import blend as ours
torch.manual_seed(0)
for C, L, P, B in [(3, 5, 64 * 64, 3), (1, 2, 100, 4), (3, 5, 8 * 8, 2), (4, 1, 1500, 1)]:
    layers, view = torch.randint(0, 256, (6, L, P), dtype=torch.uint8), torch.randint(0, 6, (B,))
    colours = torch.rand(B, C, L)
    made = ours._blend_kernel._init_fn(layers, view, colours, 200.0, 30.0)
    torch.testing.assert_close(made, ours.blend(layers, view, colours, unit=200.0, zero=30.0))
"""


@pytest.mark.triton
def test_kernel_by_the_interpreter():
    run_interpreted(KERNEL)


def test_mapped_batches_are_one_batch():
    """The rule by which `vmap` calls the kernel, with the plain form in the kernel's place."""
    seen = []

    def plain(layers, view, colours, unit, zero):
        seen.append(view.shape)
        return blend(layers, view, colours, unit=unit, zero=zero)

    torch.manual_seed(0)
    layers, view = torch.randint(0, 256, (6, 5, 16), dtype=torch.uint8), torch.randint(0, 6, (4, 3))
    colours = torch.rand(4, 3, 3, 5)
    module._blend_kernel.register_kernel("cpu")(plain)
    made = vmap(lambda v, c: module._blend_kernel(layers, v, c, 200.0, 30.0))(view, colours)
    same = vmap(lambda v: module._blend_kernel(layers, v, colours[0], 200.0, 30.0))(view)
    for r in range(4):
        torch.testing.assert_close(made[r], blend(layers, view[r], colours[r], unit=200.0, zero=30.0))
        torch.testing.assert_close(same[r], blend(layers, view[r], colours[0], unit=200.0, zero=30.0))
    assert seen == [(12,), (12,)]
