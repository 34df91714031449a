"""Numbers that a compiler is to compute once.

Inductor writes what is cheap into every kernel that reads it: a replica's learning rate into the update of each weight,
the hash behind an observation's number into each pixel of its picture. Behind this they are read instead.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor


@torch.library.custom_op("unweave::settled", mutates_args=())
def _settled(values: Tensor) -> Tensor:
    return values.clone()


@_settled.register_fake
def _(values: Tensor) -> Tensor:
    return torch.empty_like(values)


@_settled.register_vmap
def _(info: Any, in_dims: tuple[int | None, ...], values: Tensor) -> tuple[Tensor, int | None]:
    return _settled(values), in_dims[0]


def settled(values: Tensor) -> Tensor:
    """The same numbers, as a tensor of their own. It has no gradient."""
    return _settled(values) if values.dim() else values
