"""Prevent a compiler from recomputing values.

Inductor fuses cheap computations into every kernel that reads their result, such as a replica's learning rate into the
update of each weight. The result of `no_fuse` is computed once and read.
"""

import torch
from torch import Tensor


@torch.library.custom_op("unweave::no_fuse", mutates_args=())
def _no_fuse(values: Tensor) -> Tensor:
    return values.clone()


@_no_fuse.register_fake
def _(values: Tensor) -> Tensor:
    return torch.empty_like(values)


def no_fuse(values: Tensor) -> Tensor:
    """Return a copy of the values, without a gradient."""
    return _no_fuse(values) if values.dim() else values
