"""Stride-2 convolutions that halve or double an image. Their weights are those of torch's own layers."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from unweave.ops.conv import conv_by_patches, transposed_by_patches


def _pixels_first(x: Tensor) -> Tensor:
    """The layout in which a CPU's transposed convolutions are a third faster."""
    return x.contiguous(memory_format=torch.channels_last)


class Halve(nn.Conv2d):
    """A convolution of stride 2 with kernel 2 or 4."""

    def __init__(self, inputs: int, outputs: int, kernel: int) -> None:
        super().__init__(inputs, outputs, kernel, stride=2, padding=(kernel - 2) // 2)

    def forward(self, input: Tensor) -> Tensor:
        if input.is_cuda:
            return conv_by_patches(input, self.weight, self.bias)  # type: ignore[arg-type]
        return F.conv2d(_pixels_first(input), self.weight, self.bias, self.stride, self.padding)


class Double(nn.ConvTranspose2d):
    """A transposed convolution of stride 2 with kernel 4."""

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__(inputs, outputs, 4, stride=2, padding=1)

    def forward(self, input: Tensor, output_size: list[int] | None = None) -> Tensor:
        if input.is_cuda:
            return transposed_by_patches(input, self.weight, self.bias)  # type: ignore[arg-type]
        return F.conv_transpose2d(_pixels_first(input), self.weight, self.bias, self.stride, self.padding)  # type: ignore[arg-type]
