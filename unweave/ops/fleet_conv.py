"""Stride-2 convolutions with a replica axis: the layers of many models in one kernel launch.

`convolve` computes a stack of convolutions of one model, with biases and ReLUs. Under `torch.func.vmap` over models the
replicas become the leading axis of one call.

Every pass is `down`, `up` or `gradient` (see `kernels.py`). They are Triton kernels on CUDA; elsewhere they are patches
and one batched matrix product, with which the kernels are compared in tests.

Shape letters: R replicas, B batch, H and W the larger sides, h = H/2 and w = W/2, C channels of the larger image,
S of the smaller one, k kernel side (2, or 4 with padding 1). Weights are [R, S, C, k, k] for both layers.
"""

import importlib.util
from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor

from unweave.ops.conv import col2im, im2col

HAS_TRITON = importlib.util.find_spec("triton") is not None
_MAX_CHANNELS = 128  # that fit into one tile
_MAX_OFFSET = 2**31 - 1  # of 32 bits
_FEW_CHANNELS = 4  # of an image, up to which storing and adding all taps is faster


def pack(weight_RSCkk: Tensor, dtype: torch.dtype) -> Tensor:
    """Return the weights as [R, k, k, C, S], with taps and channels in the order of an image."""
    return weight_RSCkk.permute(0, 3, 4, 2, 1).to(dtype).contiguous()


def _by_kernel(image: Tensor, packed: Tensor) -> bool:
    return HAS_TRITON and image.is_cuda and max(packed.shape[3:]) <= _MAX_CHANNELS


def _power(n: int, least: int = 16) -> int:
    return max(least, 1 << (n - 1).bit_length())


def _is_wide(M: int, C: int, S: int) -> bool:
    """Return True if the images of one replica have more numbers than 32-bit offsets can address."""
    return M * max(4 * C, S) > _MAX_OFFSET


def _precision() -> str:
    """Return how float32 products may be rounded, as set in torch for matrix products."""
    return "ieee" if torch.get_float32_matmul_precision() == "highest" else "tf32"


@torch.library.custom_op("unweave::conv_down", mutates_args=(), device_types="cuda")
def _down_kernel(big: Tensor, packed: Tensor, bias: Tensor, gate: Tensor, relu: bool, precision: str) -> Tensor:
    import triton

    from unweave.ops.kernels import down_kernel

    R, B, H, W, C = big.shape
    k, S = packed.shape[1], packed.shape[4]
    out = big.new_empty(R, B, H // 2, W // 2, S)
    M = B * (H // 2) * (W // 2)
    block_m, block_k = 128, min(_power(k * k * C), 32)
    grid = (triton.cdiv(M, block_m), R)
    down_kernel[grid](
        big, packed, bias, gate, out, M, H // 2, W // 2, C=C, S=S, k=k, BIAS=bias.numel() > 0, RELU=relu,
        GATE=gate.numel() > 0, PRECISION=precision, WIDE=_is_wide(M, C, S),
        BLOCK_M=block_m, BLOCK_K=block_k, BLOCK_S=_power(S), num_warps=4, num_stages=4,
    )  # fmt: skip
    return out


@_down_kernel.register_fake
def _(big: Tensor, packed: Tensor, bias: Tensor, gate: Tensor, relu: bool, precision: str) -> Tensor:
    R, B, H, W, _ = big.shape
    return big.new_empty(R, B, H // 2, W // 2, packed.shape[4])


@torch.library.custom_op("unweave::conv_up", mutates_args=(), device_types="cuda")
def _up_kernel(small: Tensor, packed: Tensor, bias: Tensor, gate: Tensor, relu: bool, precision: str) -> Tensor:
    import triton

    from unweave.ops.kernels import up_kernel

    R, B, h, w, S = small.shape
    k, C = packed.shape[1], packed.shape[3]
    out = small.new_empty(R, B, 2 * h, 2 * w, C)
    M, block_m = B * h * w, 128
    up_kernel[(triton.cdiv(M, block_m), 4, R)](
        small, packed, bias, gate, out, M, h, w, C=C, S=S, k=k, BIAS=bias.numel() > 0, RELU=relu,
        GATE=gate.numel() > 0, PRECISION=precision, WIDE=_is_wide(M, C, S),
        BLOCK_M=block_m, BLOCK_S=min(_power(S), 64), BLOCK_C=_power(C), num_warps=4, num_stages=3,
    )  # fmt: skip
    return out


@_up_kernel.register_fake
def _(small: Tensor, packed: Tensor, bias: Tensor, gate: Tensor, relu: bool, precision: str) -> Tensor:
    R, B, h, w, _ = small.shape
    return small.new_empty(R, B, 2 * h, 2 * w, packed.shape[3])


def _parts(R: int, M: int, k: int, C: int, dtype: torch.dtype) -> int:
    """Return into how many parts the rows are split, so that few models use the whole device too.

    In float32 it does not depend on R: then the sums of a model do not depend on the other models.
    """
    if dtype == torch.float32:
        return max(1, min(16, M // 256))
    programs = R * max(1, k * k * C // 128)
    return max(1, min(32, 512 // programs, M // 256))


@torch.library.custom_op("unweave::conv_gradient", mutates_args=(), device_types="cuda")
def _gradient_kernel(big: Tensor, small: Tensor, k: int, precision: str) -> Tensor:
    import triton

    from unweave.ops.kernels import gather_kernel, gradient_kernel

    R, B, h, w, S = small.shape
    C, M = big.shape[4], B * h * w
    block_m, block_k = 64 if C >= 16 else 128, min(_power(k * k * C), 128)
    parts = _parts(R, M, k, C, big.dtype)
    rounds = triton.cdiv(M, parts * block_m)
    found = big.new_empty(parts, R, k, k, C, S, dtype=torch.float32)
    grid = (triton.cdiv(k * k * C, block_k), parts, R)
    gradient_kernel[grid](
        big, small, found, M, h, w, C=C, S=S, k=k, PRECISION=precision, WIDE=_is_wide(M, C, S), ROUNDS=rounds,
        BLOCK_M=block_m, BLOCK_K=block_k, BLOCK_S=_power(S), num_warps=4, num_stages=3,
    )  # fmt: skip
    out = big.new_empty(R, S, C, k, k, dtype=torch.float32)
    gather_kernel[(C, R)](found, out, C, S=S, k=k, PARTS=parts, BLOCK_S=_power(S))
    return out


@_gradient_kernel.register_fake
def _(big: Tensor, small: Tensor, k: int, precision: str) -> Tensor:
    return big.new_empty(small.shape[0], small.shape[4], big.shape[4], k, k, dtype=torch.float32)


def down(big_RBHWC: Tensor, packed: Tensor, bias: Tensor, gate: Tensor, relu: bool) -> Tensor:
    """Return the weighted sum of every window [R, B, h, w, S]. An empty bias or gate is not applied."""
    if _by_kernel(big_RBHWC, packed):
        return _down_kernel(big_RBHWC.contiguous(), packed, bias, gate, relu, _precision())
    R, B, H, W, _ = big_RBHWC.shape
    windows = im2col(big_RBHWC.flatten(0, 1), packed.shape[1]).reshape(R, B * H * W // 4, -1)
    out = torch.bmm(windows, packed.flatten(1, 3)).reshape(R, B, H // 2, W // 2, -1)
    return _finish(out, bias, gate, relu)


def up(small_RBhwS: Tensor, packed: Tensor, bias: Tensor, gate: Tensor, relu: bool) -> Tensor:
    """Return the sum of the windows of all pixels [R, B, H, W, C]. An empty bias or gate is not applied."""
    if _by_kernel(small_RBhwS, packed) and packed.shape[3] > _FEW_CHANNELS:
        return _up_kernel(small_RBhwS.contiguous(), packed, bias, gate, relu, _precision())
    R, B, h, w, S = small_RBhwS.shape
    taps = torch.bmm(small_RBhwS.reshape(R, -1, S), packed.flatten(1, 3).transpose(1, 2))
    big = col2im(taps.reshape(R * B, h, w, -1), packed.shape[1])
    return _finish(big.reshape(R, B, 2 * h, 2 * w, -1), bias, gate, relu)


def _finish(out: Tensor, bias_RO: Tensor, gate: Tensor, relu: bool) -> Tensor:
    if bias_RO.numel():
        out = out + bias_RO[:, None, None, None, :].to(out.dtype)
    if gate.numel():
        out = torch.where(gate > 0, out, 0.0)
    return out.relu() if relu else out


def gradient(big_RBHWC: Tensor, small_RBhwS: Tensor, packed: Tensor) -> Tensor:
    """Return the gradient of the weights [R, S, C, k, k], in float32."""
    k = packed.shape[1]
    R, B, h, w, S = small_RBhwS.shape
    if _by_kernel(big_RBHWC, packed):
        return _gradient_kernel(big_RBHWC.contiguous(), small_RBhwS.contiguous(), k, _precision())
    windows = im2col(big_RBHWC.flatten(0, 1), k).reshape(R, B * h * w, -1)
    grads = torch.bmm(windows.transpose(1, 2), small_RBhwS.reshape(R, -1, S))
    return grads.reshape(R, k, k, -1, S).permute(0, 4, 3, 1, 2)


class Layer(NamedTuple):
    """A layer from the larger image to the smaller (`shrink`) or back, optionally with a ReLU."""

    shrink: bool
    relu: bool


class _Stack(torch.autograd.Function):
    """Layers of R models in sequence. Returns the output of every layer; only the last one has a gradient."""

    @staticmethod
    def forward(plan: tuple[Layer, ...], image: Tensor, *parameters: Tensor) -> tuple[Tensor, ...]:
        outputs, none = [image], image.new_empty(0)
        for layer, weight, bias in zip(plan, parameters[::2], parameters[1::2], strict=True):
            packed = pack(weight, image.dtype)
            move = down if layer.shrink else up
            outputs.append(move(outputs[-1], packed, bias.to(image.dtype), none, layer.relu))
        return tuple(outputs[1:])

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple, output: tuple[Tensor, ...]) -> None:
        ctx.plan = inputs[0]
        ctx.save_for_backward(inputs[1], *output, *inputs[2::2])
        ctx.mark_non_differentiable(*output[:-1])

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple:
        depth = len(ctx.plan)
        images, weights = ctx.saved_tensors[: depth + 1], ctx.saved_tensors[depth + 1 :]
        none = images[0].new_empty(0)
        grad = torch.where(images[-1] > 0, grads[-1], 0.0) if ctx.plan[-1].relu else grads[-1]
        found: list[Tensor] = []
        for at in reversed(range(depth)):
            layer, image, packed = ctx.plan[at], images[at], pack(weights[at], grad.dtype)
            big, small = (image, grad) if layer.shrink else (grad, image)
            bias = grad.sum((1, 2, 3), dtype=weights[at].dtype)
            found = [gradient(big, small, packed).to(weights[at].dtype), bias, *found]
            if at or ctx.needs_input_grad[1]:
                gate = image if at and ctx.plan[at - 1].relu else none
                grad = (up if layer.shrink else down)(grad, packed, none, gate, False)
        return None, grad if ctx.needs_input_grad[1] else None, *found

    @staticmethod
    def vmap(info: Any, in_dims: tuple, plan: tuple[Layer, ...], *tensors: Tensor) -> tuple:
        """Run vmapped models as replicas of one batched call."""
        folded = []
        for tensor, dim in zip(tensors, in_dims[1:], strict=True):
            wide = tensor.expand(info.batch_size, *tensor.shape) if dim is None else tensor.movedim(dim, 0)
            folded.append(wide.flatten(0, 1))
        outputs = _Stack.apply(plan, *folded)
        return tuple(out.unflatten(0, (info.batch_size, -1)) for out in outputs), (0,) * len(outputs)


def convolve(x_BCHW: Tensor, plan: Sequence[Layer], parameters: Sequence[Tensor]) -> Tensor:
    """Apply stride-2 convolutions or transposed ones of one model; `parameters` are weight, bias, weight, ..."""
    if torch.is_autocast_enabled(x_BCHW.device.type):
        x_BCHW = x_BCHW.to(torch.get_autocast_dtype(x_BCHW.device.type))
    outputs = _Stack.apply(tuple(plan), x_BCHW.permute(0, 2, 3, 1)[None], *(p[None] for p in parameters))
    return outputs[-1][0].permute(0, 3, 1, 2)
