"""Stride-2 convolutions that halve or double an image, with the parameters of torch's layers."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from unweave.ops.conv import conv_by_patches, transposed_by_patches
from unweave.ops.fleet_conv import Layer, convolve

_implementation: ContextVar[str | None] = ContextVar("implementation", default=None)


@contextmanager
def conv_implementation(implementation: str) -> Iterator[None]:
    """Compute the layers in this block with torch ("library"), by "patches", or with a replica axis ("fleet")."""
    token = _implementation.set(implementation)
    try:
        yield
    finally:
        _implementation.reset(token)


def _chosen(x: Tensor) -> str:
    """Return the implementation to use: patches are faster for one model on CUDA, the library on a CPU."""
    return _implementation.get() or ("patches" if x.is_cuda else "library")


def _channels_last(x: Tensor) -> Tensor:
    """Convert to the layout in which transposed convolutions on a CPU are a third faster; vmap does not support it."""
    return x if _implementation.get() else x.contiguous(memory_format=torch.channels_last)


class DownConv2d(nn.Conv2d):
    """A convolution of stride 2 with kernel 2 or 4, optionally followed by a ReLU."""

    bias: Tensor

    def __init__(self, inputs: int, outputs: int, kernel: int, *, relu: bool = False) -> None:
        super().__init__(inputs, outputs, kernel, stride=2, padding=(kernel - 2) // 2)
        self.relu = relu

    def forward(self, input: Tensor) -> Tensor:
        if _chosen(input) == "patches":
            output = conv_by_patches(input, self.weight, self.bias)
        else:
            output = F.conv2d(_channels_last(input), self.weight, self.bias, self.stride, self.padding)
        return output.relu() if self.relu else output


class UpConv2d(nn.ConvTranspose2d):
    """A transposed convolution of stride 2 with kernel 4, optionally followed by a ReLU."""

    bias: Tensor

    def __init__(self, inputs: int, outputs: int, *, relu: bool = False) -> None:
        super().__init__(inputs, outputs, 4, stride=2, padding=1)
        self.relu = relu

    def forward(self, input: Tensor, output_size: list[int] | None = None) -> Tensor:
        if _chosen(input) == "patches":
            output = transposed_by_patches(input, self.weight, self.bias)
        else:
            output = F.conv_transpose2d(_channels_last(input), self.weight, self.bias, 2, 1)
        return output.relu() if self.relu else output


class ConvStack(nn.Sequential):
    """A sequence of these layers."""

    def forward(self, input: Tensor) -> Tensor:
        if _chosen(input) != "fleet":
            return super().forward(input)
        plan = [Layer(isinstance(layer, DownConv2d), bool(layer.relu)) for layer in self]
        return convolve(input, plan, [p for layer in self for p in layer.parameters()])
