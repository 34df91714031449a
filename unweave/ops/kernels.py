"""Triton kernels of stride-2 convolutions for many models at once.

A program instance computes a tile of one replica and reads the pixels of the image directly: no patches are written
to memory. An image between two layers is the larger one ("big", [R, B, H, W, C]) or the smaller one ("small",
[R, B, h, w, S] with H = 2 h and W = 2 w), and every pass of a convolution and of a transposed convolution is one
of three: `down` (big to small), `up` (small to big), `gradient` (of the weights, from both: in parts, which `gather`
adds up). The first two end with a bias and a ReLU in the forward pass, and in the backward pass with the gate of the
previous ReLU: zero where its output was zero.

Weights are packed as [R, k, k, C, S]; a row of taps and its channels (k * C numbers) is contiguous, in the weights and
in the image. Offsets inside one replica have 32 bits, or 64 with WIDE, which is slower and only needed if the images
of a replica have more than 2^31 numbers.

Letters: R replicas, B batch, k kernel side (2, or 4 with padding P = 1), M = B * h * w.
"""

import triton
import triton.language as tl


@triton.jit
def down_kernel(
    big, weight, bias, gate, out,
    M: tl.constexpr, h: tl.constexpr, w: tl.constexpr, C: tl.constexpr, S: tl.constexpr, k: tl.constexpr,
    BIAS: tl.constexpr, RELU: tl.constexpr, GATE: tl.constexpr,
    PRECISION: tl.constexpr, WIDE: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_K: tl.constexpr, BLOCK_S: tl.constexpr,
) -> None:  # fmt: skip
    """out[m, s] = sum over taps and channels of big[window of m] * weight[tap, channel, s]."""
    P: tl.constexpr = (k - 2) // 2
    K: tl.constexpr = k * k * C
    replica = tl.program_id(1).to(tl.int64)
    block = tl.program_id(0)
    if WIDE:
        block = block.to(tl.int64)
    m = block * BLOCK_M + tl.arange(0, BLOCK_M)
    x0 = 2 * (m % w) - P
    y0 = 2 * ((m // w) % h) - P
    image = (m // (w * h)) * (4 * h * w)
    s = tl.arange(0, BLOCK_S)
    big += replica * M * (4 * C)
    weight += replica * (K * S)
    corner = (image + y0 * (2 * w) + x0) * C
    total = tl.zeros((BLOCK_M, BLOCK_S), dtype=tl.float32)
    for start in range(0, K, BLOCK_K):
        tap = start + tl.arange(0, BLOCK_K)
        row, column = tap // (k * C), tap % (k * C)
        inside = (m < M)[:, None] & (tap < K)[None, :]
        if P > 0:  # without padding every tap is, and asking would keep loads from being wide
            y = y0[:, None] + row[None, :]
            x = x0[:, None] + (column // C)[None, :]
            inside = inside & (y >= 0) & (y < 2 * h) & (x >= 0) & (x < 2 * w)
        window = tl.load(big + corner[:, None] + (row * (2 * w * C) + column)[None, :], mask=inside, other=0.0)
        taps = tl.load(weight + tap[:, None] * S + s[None, :], mask=(tap < K)[:, None] & (s < S)[None, :], other=0.0)
        total = tl.dot(window, taps, total, input_precision=PRECISION)
    if BIAS:
        total += tl.load(bias + replica * S + s, mask=s < S, other=0.0).to(tl.float32)[None, :]
    if RELU:
        total = tl.maximum(total, 0.0)
    target = replica * M * S + m[:, None] * S + s[None, :]
    stored = (m < M)[:, None] & (s < S)[None, :]
    if GATE:
        total = tl.where(tl.load(gate + target, mask=stored, other=0.0) > 0, total, 0.0)
    tl.store(out + target, total.to(out.dtype.element_ty), mask=stored)


@triton.jit
def up_kernel(
    small, weight, bias, gate, out,
    M: tl.constexpr, h: tl.constexpr, w: tl.constexpr, C: tl.constexpr, S: tl.constexpr, k: tl.constexpr,
    BIAS: tl.constexpr, RELU: tl.constexpr, GATE: tl.constexpr,
    PRECISION: tl.constexpr, WIDE: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_S: tl.constexpr, BLOCK_C: tl.constexpr,
) -> None:  # fmt: skip
    """One of the four pixels of each small pixel, with all channels; program axis 1 is its index."""
    P: tl.constexpr = (k - 2) // 2
    replica = tl.program_id(2).to(tl.int64)
    a, b = tl.program_id(1) // 2, tl.program_id(1) % 2
    block = tl.program_id(0)
    if WIDE:
        block = block.to(tl.int64)
    m = block * BLOCK_M + tl.arange(0, BLOCK_M)
    x, y = m % w, (m // w) % h
    c, s0 = tl.arange(0, BLOCK_C), tl.arange(0, BLOCK_S)
    small += replica * M * S
    weight += replica * (k * k * C * S)
    total = tl.zeros((BLOCK_M, BLOCK_C), dtype=tl.float32)
    parts: tl.constexpr = (S + BLOCK_S - 1) // BLOCK_S
    for part in range(0, (k // 2) * (k // 2) * parts):
        near, s = part // parts, (part % parts) * BLOCK_S + s0
        # Neighbours on the side of this pixel: 0 and -1 for the first of two, 0 and +1 for the second.
        dy, dx = (near // (k // 2)) * (2 * a - 1), (near % (k // 2)) * (2 * b - 1)
        i, j = a + P - 2 * dy, b + P - 2 * dx
        inside = (y + dy >= 0) & (y + dy < h) & (x + dx >= 0) & (x + dx < w) & (m < M)
        place = (m + dy * w + dx) * S
        pixels = tl.load(small + place[:, None] + s[None, :], mask=inside[:, None] & (s < S)[None, :], other=0.0)
        tap = weight + (i * k + j) * (C * S)
        taps = tl.load(tap + c[None, :] * S + s[:, None], mask=(s < S)[:, None] & (c < C)[None, :], other=0.0)
        total = tl.dot(pixels, taps, total, input_precision=PRECISION)
    if BIAS:
        total += tl.load(bias + replica * C + c, mask=c < C, other=0.0).to(tl.float32)[None, :]
    if RELU:
        total = tl.maximum(total, 0.0)
    pixel = (m // w) * (4 * w) + a * (2 * w) + 2 * x + b
    target = replica * M * (4 * C) + pixel[:, None] * C + c[None, :]
    stored = (m < M)[:, None] & (c < C)[None, :]
    if GATE:
        total = tl.where(tl.load(gate + target, mask=stored, other=0.0) > 0, total, 0.0)
    tl.store(out + target, total.to(out.dtype.element_ty), mask=stored)


@triton.jit
def gradient_kernel(
    big, small, out,
    M: tl.constexpr, h: tl.constexpr, w: tl.constexpr, C: tl.constexpr, S: tl.constexpr, k: tl.constexpr,
    PRECISION: tl.constexpr, WIDE: tl.constexpr, ROUNDS: tl.constexpr,
    BLOCK_M: tl.constexpr, BLOCK_K: tl.constexpr, BLOCK_S: tl.constexpr,
) -> None:  # fmt: skip
    """out[part, tap and channel, s] = sum over this part's m of big[window of m] * small[m, s]."""
    P: tl.constexpr = (k - 2) // 2
    K: tl.constexpr = k * k * C
    replica = tl.program_id(2).to(tl.int64)
    part = tl.program_id(1)
    if WIDE:
        part = part.to(tl.int64)
    tap = tl.program_id(0) * BLOCK_K + tl.arange(0, BLOCK_K)
    row, column = tap // (k * C), tap % (k * C)
    s = tl.arange(0, BLOCK_S)
    big += replica * M * (4 * C)
    small += replica * M * S
    total = tl.zeros((BLOCK_K, BLOCK_S), dtype=tl.float32)
    for turn in range(0, ROUNDS):
        m = (part * ROUNDS + turn) * BLOCK_M + tl.arange(0, BLOCK_M)
        x0 = 2 * (m % w) - P
        y0 = 2 * ((m // w) % h) - P
        corner = ((m // (w * h)) * (4 * h * w) + y0 * (2 * w) + x0) * C
        inside = (m < M)[:, None] & (tap < K)[None, :]
        if P > 0:  # without padding every tap is, and asking would keep loads from being wide
            y = y0[:, None] + row[None, :]
            x = x0[:, None] + (column // C)[None, :]
            inside = inside & (y >= 0) & (y < 2 * h) & (x >= 0) & (x < 2 * w)
        window = tl.load(big + corner[:, None] + (row * (2 * w * C) + column)[None, :], mask=inside, other=0.0)
        pixels = tl.load(small + m[:, None] * S + s[None, :], mask=(m < M)[:, None] & (s < S)[None, :], other=0.0)
        total = tl.dot(tl.trans(window), pixels, total, input_precision=PRECISION)
    replicas = tl.num_programs(2)
    target = out + (part * replicas + replica) * (K * S) + tap[:, None] * S + s[None, :]
    tl.store(target, total, mask=(tap < K)[:, None] & (s < S)[None, :])


@triton.jit
def gather_kernel(
    parts, out, C, S: tl.constexpr, k: tl.constexpr, PARTS: tl.constexpr, BLOCK_S: tl.constexpr,
) -> None:  # fmt: skip
    """out[s, c, tap] = sum over parts of parts[tap, c, s], always in the same order; program axis 0 is c."""
    c, replica, replicas = tl.program_id(0), tl.program_id(1).to(tl.int64), tl.num_programs(1)
    s, tap = tl.arange(0, BLOCK_S), tl.arange(0, k * k)
    mask = (s < S)[None, :] & (tap >= 0)[:, None]
    place = parts + ((replica * (k * k) + tap) * C + c)[:, None] * S + s[None, :]
    stride = replicas.to(tl.int64) * (k * k * C * S)  # thousands of models exceed 32 bits
    total = tl.zeros((k * k, BLOCK_S), dtype=tl.float32)
    for part in range(0, PARTS):
        total += tl.load(place + part * stride, mask=mask, other=0.0)
    tl.store(out + ((replica * S + s) * C + c)[None, :] * (k * k) + tap[:, None], total, mask=mask)
