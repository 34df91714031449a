"""Counter-based random numbers in plain tensor arithmetic.

The numbers of a stream are a function of (key, position) alone: splitmix64 (Steele et al. 2014)
over a counter. The same key gives the same bits on every device and in every engine, a run's
stream does not depend on who trains beside it, and nothing has to be saved to resume.
"""

from __future__ import annotations

import math
import zlib

import torch
from torch import Tensor

_GOLDEN = -7046029254386353131  # 0x9E3779B97F4A7C15 as a signed 64-bit number
_MIX_1 = -4658895280553007687  # 0xBF58476D1CE4E5B9
_MIX_2 = -7723592293110705685  # 0x94D049BB133111EB
_SCALE = 2.0**-32


def _shift(bits: Tensor, n: int) -> Tensor:
    """Logical right shift; torch's own is arithmetic on int64."""
    return (bits >> n) & ((1 << (64 - n)) - 1)


def mix(bits: Tensor) -> Tensor:
    """The finaliser of splitmix64: a bijection of int64 that flips half the bits on average."""
    bits = (bits ^ _shift(bits, 30)) * _MIX_1
    bits = (bits ^ _shift(bits, 27)) * _MIX_2
    return bits ^ _shift(bits, 31)


def fold(key: Tensor, item: Tensor | int | str) -> Tensor:
    """A new key from a key and an item (a step, a phase, the name of a stream)."""
    if isinstance(item, str):
        item = zlib.crc32(item.encode())
    return mix(mix(key + _GOLDEN) ^ item)


def random_bits(key: Tensor, shape: tuple[int, ...]) -> Tensor:
    """Uniform int64 of the given shape. Keys must come from `fold`: neighbouring numbers are no keys."""
    counter = torch.arange(1, math.prod(shape) + 1, device=key.device, dtype=torch.int64)
    # Exclusive-or rather than sum: compilers fold sums of counters into index arithmetic, which overflows.
    return mix((key ^ counter) * _GOLDEN).reshape(shape)


def random_uniform(key: Tensor, shape: tuple[int, ...]) -> Tensor:
    """Float32 uniform in [0, 1): 24 bits, so that 1 is never reached."""
    return _shift(random_bits(key, shape), 40).float() * 2.0**-24


def random_normal(key: Tensor, shape: tuple[int, ...]) -> Tensor:
    """Float32 standard normal by Box-Muller, one hash a number (its two halves are the uniforms)."""
    bits = random_bits(key, shape)
    radius = torch.sqrt(-2.0 * torch.log((_shift(bits, 32).float() + 0.5) * _SCALE))
    return radius * torch.cos((bits & 0xFFFFFFFF).float() * (2.0 * math.pi * _SCALE))


def random_integers(key: Tensor, shape: tuple[int, ...], high: Tensor | int) -> Tensor:
    """Int64 uniform in 0..high-1 (high up to 2^31; the bias is below high / 2^32)."""
    return (_shift(random_bits(key, shape), 32) * high) >> 32
