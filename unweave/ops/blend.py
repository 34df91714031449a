"""Render images as colours times layers; the share of each layer in each pixel is stored.

On CUDA one kernel reads the stored bytes and writes the images: a batched product of such small matrices takes longer
than the first layer of a network, and so does converting the layers to floats.

Shape letters: N stored views, B batch, C channels, L layers, P pixels.
"""

import importlib.util
from typing import Any

import torch
from torch import Tensor

HAS_TRITON = importlib.util.find_spec("triton") is not None


@torch.library.custom_op("unweave::blend", mutates_args=(), device_types="cuda")
def _blend_kernel(layers: Tensor, view: Tensor, colours: Tensor, unit: float, zero: float) -> Tensor:
    import triton

    from unweave.ops.blend_kernel import blend_kernel

    (B, C, L), P = colours.shape, layers.shape[2]
    out = colours.new_empty(B, C, P)
    block = min(1024, triton.next_power_of_2(P))
    blend_kernel[(B, triton.cdiv(P, block))](
        layers, view, colours, out, P, zero, 1.0 / unit, C=C, L=L, BLOCK_C=triton.next_power_of_2(C), BLOCK_P=block
    )
    return out


@_blend_kernel.register_fake
def _(layers: Tensor, view: Tensor, colours: Tensor, unit: float, zero: float) -> Tensor:
    return colours.new_empty(*colours.shape[:2], layers.shape[2])


@_blend_kernel.register_vmap
def _(info: Any, in_dims: tuple, layers: Tensor, view: Tensor, colours: Tensor, unit: float, zero: float) -> tuple:
    """Run vmapped batches as one batch; they share the store."""
    R = info.batch_size
    each = [
        value.expand(R, *value.shape) if dim is None else value.movedim(dim, 0)
        for value, dim in zip((view, colours), in_dims[1:3], strict=True)
    ]
    out = _blend_kernel(layers, *(value.flatten(0, 1) for value in each), unit, zero)
    return out.unflatten(0, (R, -1)), 0


def blend(layers_NLP: Tensor, view_B: Tensor, colours_BCL: Tensor, *, unit: float, zero: float) -> Tensor:
    """Return images [B, C, P] in 0..1, float32. A layer's value v is stored as the byte `unit` v + `zero`."""
    if HAS_TRITON and layers_NLP.is_cuda:
        return _blend_kernel(layers_NLP, view_B.contiguous(), colours_BCL.contiguous(), unit, zero)
    shares_BLP = (layers_NLP[view_B].float() - zero) * (1.0 / unit)
    return (colours_BCL @ shares_BLP).clamp(0.0, 1.0)
