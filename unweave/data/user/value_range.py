"""Values of arrays as bytes. Which integer is white is decided by all images of a set together."""

from typing import Any

import numpy as np
import torch

from unweave.data.user.image_io import MAX_16_BIT, level_table
from unweave.errors import invalid

_WHITES = (1, 255, MAX_16_BIT)
_ACCEPTED = "integers in 0..65535, or floats in 0..1"


def as_array(values: Any) -> np.ndarray:
    """Return an array or a tensor as an array on the host."""
    if not isinstance(values, torch.Tensor):
        return np.asarray(values)
    host = values.detach().cpu()
    return (host.float() if host.dtype == torch.bfloat16 else host).numpy()


def value_type(dtype: np.dtype, context: str) -> str:
    """Return "float", or the name of an integer type or "bool"; raise for other types."""
    if dtype.kind not in "buif":
        raise invalid("images", str(dtype), _ACCEPTED, context=context)
    return "float" if dtype.kind == "f" else dtype.name


def white_of(low: int, high: int, context: str) -> int:
    """Return the smallest of 1, 255 and 65535 that no value exceeds: this value is white."""
    if low < 0 or high > MAX_16_BIT:
        raise invalid("images", f"integers from {low} to {high}", _ACCEPTED, context=context)
    return next(white for white in _WHITES if high <= white)


def integer_levels(values: np.ndarray, white: int) -> np.ndarray:
    """Return non-negative integers as bytes such that `white` becomes 255."""
    if white == 255 and values.dtype == np.uint8:
        return values
    return level_table(white)[values.astype(np.uint8) if values.dtype == np.bool_ else values]


def unit_floats(values: np.ndarray, context: str) -> np.ndarray:
    """Return floats as float32; raise unless they are in 0..1."""
    floats = values.astype(np.float32, copy=False)
    low, high = float(floats.min()), float(floats.max())
    if not (np.isfinite(low) and np.isfinite(high)):
        raise invalid("images", "nan or infinity", "finite", context=context)
    if low < 0.0 or high > 1.0:
        raise invalid("images", f"floats from {low:g} to {high:g}", _ACCEPTED, context=context)
    return floats


def float_levels(floats: np.ndarray) -> np.ndarray:
    """Return floats in 0..1 as bytes."""
    return (floats * np.float32(255.0)).round().astype(np.uint8)


def are_divided_bytes(floats: np.ndarray) -> bool:
    """Return True if these float32 are bytes divided by 255, which need a quarter of the memory as bytes."""
    return bool((float_levels(floats) / np.float32(255.0) == floats).all())
