"""Where networks hand over to losses."""

from __future__ import annotations

import torch
from torch import Tensor


def at_least_single(values: Tensor) -> Tensor:
    """Float32 or better: what leaves a network under mixed precision is bfloat16."""
    return values.to(torch.promote_types(values.dtype, torch.float32))
