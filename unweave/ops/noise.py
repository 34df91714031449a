"""Counter-based random numbers in tensor arithmetic.

The numbers of a stream are a function of (key, position): splitmix64 (Steele et al. 2014) over a counter. The same key
gives the same bits on every device and in every engine. The stream of a run does not depend on other replicas, and
resuming needs no stored state.
"""

import math
import zlib

import torch
from torch import Tensor

_GOLDEN = -7046029254386353131  # 0x9E3779B97F4A7C15 as a signed 64-bit number
_MIX_1 = -4658895280553007687  # 0xBF58476D1CE4E5B9
_MIX_2 = -7723592293110705685  # 0x94D049BB133111EB
_SCALE = 2.0**-32


def _shift(bits: Tensor, n: int) -> Tensor:
    """Logical right shift; that of torch is arithmetic for int64."""
    return (bits >> n) & ((1 << (64 - n)) - 1)


def mix(bits: Tensor) -> Tensor:
    """Apply the finaliser of splitmix64, a bijection of int64 that flips half of the bits on average."""
    bits = (bits ^ _shift(bits, 30)) * _MIX_1
    bits = (bits ^ _shift(bits, 27)) * _MIX_2
    return bits ^ _shift(bits, 31)


def fold(key: Tensor, item: Tensor | int | str) -> Tensor:
    """Return a new key from a key and an item: a step, a phase, or the name of a stream."""
    if isinstance(item, str):
        item = zlib.crc32(item.encode())
    return mix(mix(key + _GOLDEN) ^ item)


def random_bits(key: Tensor, shape: tuple[int, ...]) -> Tensor:
    """Return uniform int64. Keys must come from `fold`: consecutive integers are not valid keys."""
    counter = torch.arange(1, math.prod(shape) + 1, device=key.device, dtype=torch.int64)
    # Exclusive or, not a sum: compilers turn sums of counters into index arithmetic, which overflows.
    return mix((key ^ counter) * _GOLDEN).reshape(shape)


def random_uniform(key: Tensor, shape: tuple[int, ...]) -> Tensor:
    """Return float32 uniform in [0, 1), with 24 bits, so that 1 does not occur."""
    return _shift(random_bits(key, shape), 40).float() * 2.0**-24


def random_normal(key: Tensor, shape: tuple[int, ...]) -> Tensor:
    """Return standard normal float32 by Box-Muller; the two halves of one hash are the uniform numbers."""
    bits = random_bits(key, shape)
    radius = torch.sqrt(-2.0 * torch.log((_shift(bits, 32).float() + 0.5) * _SCALE))
    return radius * torch.cos((bits & 0xFFFFFFFF).float() * (2.0 * math.pi * _SCALE))


def random_integers(key: Tensor, shape: tuple[int, ...], high: Tensor | int) -> Tensor:
    """Return uniform int64 in 0..high-1 (high up to 2^31; the bias is below high / 2^32)."""
    return scale_bits(random_bits(key, shape), high)


def scale_bits(bits: Tensor, high: Tensor | int) -> Tensor:
    """Return random bits as integers in 0..high-1 (high up to 2^31), from their upper half."""
    return (_shift(bits, 32) * high) >> 32
