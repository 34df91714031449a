"""Precision of losses."""

import torch
from torch import Tensor


def at_least_float32(values: Tensor) -> Tensor:
    """Return the values in float32 or float64; under mixed precision networks return bfloat16."""
    return values.to(torch.promote_types(values.dtype, torch.float32))
