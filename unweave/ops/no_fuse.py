"""Numbers that a compiler is to compute once.

Inductor writes what is cheap into every kernel that reads it: a replica's learning rate into the update of each
weight. Behind this it is read instead.
"""

from __future__ import annotations

import torch
from torch import Tensor


@torch.library.custom_op("unweave::once", mutates_args=())
def _once(values: Tensor) -> Tensor:
    return values.clone()


@_once.register_fake
def _(values: Tensor) -> Tensor:
    return torch.empty_like(values)


def no_fuse(values: Tensor) -> Tensor:
    """The same numbers, as a tensor of their own. It has no gradient."""
    return _once(values) if values.dim() else values
