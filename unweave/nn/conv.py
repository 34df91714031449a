"""Stride-2 convolutions that halve or double an image. Their weights are those of torch's own layers."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from unweave.ops.conv import conv_by_patches, transposed_by_patches
from unweave.ops.fleet_conv import Layer, convolve

WAYS = ("library", "patches", "fleet")
_way: ContextVar[str | None] = ContextVar("way", default=None)


@contextmanager
def conv_implementation(implementation: str) -> Iterator[None]:
    """Within, layers compute by torch's own convolutions, by patches, or by those that take a replica axis."""
    before = _way.set(implementation)
    try:
        yield
    finally:
        _way.reset(before)


def _chosen(x: Tensor) -> str:
    """Patches are quicker for one model on CUDA, the library on a CPU."""
    return _way.get() or ("patches" if x.is_cuda else "library")


def _pixels_first(x: Tensor) -> Tensor:
    """The layout in which a CPU's transposed convolutions are a third faster; not to be had while mapped."""
    return x if _way.get() else x.contiguous(memory_format=torch.channels_last)


class DownConv2d(nn.Conv2d):
    """A convolution of stride 2 with kernel 2 or 4, and its ReLU if asked."""

    bias: Tensor

    def __init__(self, inputs: int, outputs: int, kernel: int, *, relu: bool = False) -> None:
        super().__init__(inputs, outputs, kernel, stride=2, padding=(kernel - 2) // 2)
        self.relu = relu

    def forward(self, input: Tensor) -> Tensor:
        if _chosen(input) == "patches":
            output = conv_by_patches(input, self.weight, self.bias)
        else:
            output = F.conv2d(_pixels_first(input), self.weight, self.bias, self.stride, self.padding)
        return output.relu() if self.relu else output


class UpConv2d(nn.ConvTranspose2d):
    """A transposed convolution of stride 2 with kernel 4, and its ReLU if asked."""

    bias: Tensor

    def __init__(self, inputs: int, outputs: int, *, relu: bool = False) -> None:
        super().__init__(inputs, outputs, 4, stride=2, padding=1)
        self.relu = relu

    def forward(self, input: Tensor, output_size: list[int] | None = None) -> Tensor:
        if _chosen(input) == "patches":
            output = transposed_by_patches(input, self.weight, self.bias)
        else:
            output = F.conv_transpose2d(_pixels_first(input), self.weight, self.bias, 2, 1)
        return output.relu() if self.relu else output


class ConvStack(nn.Sequential):
    """Such layers in a row."""

    def forward(self, input: Tensor) -> Tensor:
        if _chosen(input) != "fleet":
            return super().forward(input)
        plan = [Layer(isinstance(layer, DownConv2d), bool(layer.relu)) for layer in self]
        return convolve(input, plan, [p for layer in self for p in layer.parameters()])
