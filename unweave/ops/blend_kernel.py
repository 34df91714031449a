"""The Triton kernel of `blend`; each program computes a tile of pixels of one image, all channels."""

import triton
import triton.language as tl


@triton.jit
def blend_kernel(
    layers, view, colours, out, P, zero, scale,
    C: tl.constexpr, L: tl.constexpr, BLOCK_C: tl.constexpr, BLOCK_P: tl.constexpr,
) -> None:  # fmt: skip
    """out[c, p] = sum over layers of colours[c, l] * (layers[view, l, p] - zero) * scale, between 0 and 1."""
    image = tl.program_id(0).to(tl.int64)
    p, c = tl.program_id(1) * BLOCK_P + tl.arange(0, BLOCK_P), tl.arange(0, BLOCK_C)
    store = layers + tl.load(view + image).to(tl.int64) * (L * P)
    total = tl.zeros((BLOCK_C, BLOCK_P), dtype=tl.float32)
    for layer in tl.static_range(L):
        share = (tl.load(store + layer * P + p, mask=p < P, other=0).to(tl.float32) - zero) * scale
        colour = tl.load(colours + (image * C + c) * L + layer, mask=c < C, other=0.0)
        total += colour[:, None] * share[None, :]
    total = tl.minimum(tl.maximum(total, 0.0), 1.0)
    tl.store(out + (image * C + c)[:, None] * P + p[None, :], total, mask=(c < C)[:, None] & (p < P)[None, :])
