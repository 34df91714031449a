"""Stride-2 convolutions as matrix products over patches.

For the small networks used here, a library's convolution spends most of its time on changes of layout and in kernels
made for hundreds of channels. Extracting patches and adding patches up are each other's transpose, and both are index
arithmetic that a compiler fuses with other operations. What remains is one matrix product.

Shape letters: B batch, H and W the larger sides, h = H/2 and w = W/2, C channels of the larger image,
k kernel side (2, or 4 with padding 1).
"""

from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor


def im2col(x_BHWC: Tensor, k: int) -> Tensor:
    """Return all k x k windows at stride 2 [B, h, w, k * k * C]."""
    batch, height, width, channels = x_BHWC.shape
    if k == 4:
        x_BHWC = F.pad(x_BHWC, (0, 0, 1, 1, 1, 1))
    windows = x_BHWC.unfold(1, k, 2).unfold(2, k, 2)  # [B, h, w, C, k, k]
    return windows.permute(0, 1, 2, 4, 5, 3).reshape(batch, height // 2, width // 2, k * k * channels)


def _overlap_add(y: Tensor, axis: int) -> Tensor:
    """Sum overlapping taps along one axis with n positions and 4 taps each, the next axis; return them as [n, 2]."""
    inner = y.narrow(axis + 1, 1, 2)  # position m: taps 1, 2 are at 2m, 2m + 1
    n = y.shape[axis]
    before = [0, 0] * (y.dim() - axis - 2) + [1, 0]
    after = [0, 0] * (y.dim() - axis - 2) + [0, 1]
    last = F.pad(y.select(axis + 1, 3), before).narrow(axis, 0, n)  # tap 3 of the previous position is at 2m
    first = F.pad(y.select(axis + 1, 0), after).narrow(axis, 1, n)  # tap 0 of the next position is at 2m + 1
    return inner + torch.stack([last, first], dim=axis + 1)


def col2im(y_Bhwt: Tensor, k: int) -> Tensor:
    """Return the sum of overlapping windows [B, H, W, C]: the transpose of `im2col`."""
    batch, h, w, taps = y_Bhwt.shape
    y = y_Bhwt.reshape(batch, h, w, k, k, taps // (k * k)).permute(0, 1, 3, 2, 4, 5)  # [B, h, k, w, k, C]
    if k == 4:
        y = _overlap_add(_overlap_add(y, 3), 1)
    return y.reshape(batch, 2 * h, 2 * w, taps // (k * k))


class _Linear(torch.autograd.Function):
    """A linear function (x, k) -> y whose gradient is its transpose."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, k: int, function: Callable, transpose: Callable) -> Tensor:
        ctx.k, ctx.transpose = k, transpose
        return function(x, k)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, None, None, None]:
        return ctx.transpose(grads[0], ctx.k), None, None, None


def conv_by_patches(x_BCHW: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """`conv2d` of stride 2 with an [O, C, k, k] weight."""
    out, _, k, _ = weight.shape
    patches = _Linear.apply(x_BCHW.permute(0, 2, 3, 1), k, im2col, col2im)
    flat = weight.permute(0, 2, 3, 1).reshape(out, -1)
    return F.linear(patches, flat, bias).permute(0, 3, 1, 2)


def transposed_by_patches(x_BIhw: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """`conv_transpose2d` of stride 2 with an [I, C, k, k] weight."""
    inputs, _, k, _ = weight.shape
    flat = weight.permute(0, 2, 3, 1).reshape(inputs, -1)
    taps = x_BIhw.permute(0, 2, 3, 1) @ flat
    return (_Linear.apply(taps, k, col2im, im2col) + bias).permute(0, 3, 1, 2)
