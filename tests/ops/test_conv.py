"""Convolutions by patches against those of torch, forward and backward."""

import pytest
import torch
import torch.nn.functional as F

from unweave.ops.conv import conv_by_patches, transposed_by_patches


def gradients(function, *inputs):
    inputs = [t.clone().requires_grad_() for t in inputs]
    out = function(*inputs)
    probe = torch.randn(out.shape, generator=torch.Generator().manual_seed(1), dtype=out.dtype)
    return [out, *torch.autograd.grad((out * probe).sum(), inputs)]


@pytest.mark.parametrize("k", [2, 4])
@pytest.mark.parametrize("channels", [1, 3])
def test_conv(k, channels):
    torch.manual_seed(0)
    x, w, b = (torch.randn(s, dtype=torch.float64) for s in ((2, channels, 8, 16), (5, channels, k, k), (5,)))
    ours = gradients(conv_by_patches, x, w, b)
    theirs = gradients(lambda *a: F.conv2d(*a, stride=2, padding=(k - 2) // 2), x, w, b)
    for a, c in zip(ours, theirs, strict=True):
        torch.testing.assert_close(a, c)


@pytest.mark.parametrize("channels", [1, 3])
def test_transposed(channels):
    torch.manual_seed(0)
    x, w, b = (torch.randn(s, dtype=torch.float64) for s in ((2, 6, 4, 8), (6, channels, 4, 4), (channels,)))
    ours = gradients(transposed_by_patches, x, w, b)
    theirs = gradients(lambda *a: F.conv_transpose2d(*a, stride=2, padding=1), x, w, b)
    for a, c in zip(ours, theirs, strict=True):
        torch.testing.assert_close(a, c)
