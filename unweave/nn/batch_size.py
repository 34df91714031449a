"""The number of images that a function receives in one call, such that its intermediate results fit into memory."""

import math
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode

_CPU_BYTES = 2**29  # of all intermediate results of one call
_CUDA_BYTES = 2**33  # bounds the numbers in a float32 tensor to 2^31
_COPIES = 3  # of an image while it is prepared


class _CountBytes(TorchFunctionMode):
    """Count the bytes of all new tensors, also of those that are freed during the call."""

    def __init__(self) -> None:
        super().__init__()
        self.bytes = 0

    def __torch_function__(self, func: Callable, types: Any, args: tuple = (), kwargs: Any = None) -> Any:
        out = func(*args, **(kwargs or {}))
        known = {_address(tensor) for tensor in _tensors(args)}
        self.bytes += sum(tensor.nbytes for tensor in _tensors(out) if _address(tensor) not in known)
        return out


def _tensors(values: Any) -> list[Tensor]:
    return [value for value in (values if isinstance(values, tuple | list) else [values]) if isinstance(value, Tensor)]


def _address(tensor: Tensor) -> int:
    """Return where the numbers of a tensor are, which is equal for a tensor and its views."""
    try:
        return tensor.untyped_storage().data_ptr()
    except (RuntimeError, NotImplementedError):  # inside of vmap
        return -id(tensor)


def bytes_per_item(function: Callable[[Tensor], Any], shape: Sequence[int], device: torch.device) -> int:
    """Return an upper bound of the memory that a call of the function needs for each image [*shape] of its input."""
    counts = []
    for number in (1, 2):
        images = torch.zeros(number, *shape, device=device)
        with torch.no_grad(), _CountBytes() as counter:
            function(images)
        counts.append(counter.bytes)
    return max(1, counts[1] - counts[0]) + _COPIES * 4 * math.prod(shape)


def images_per_call(
    function: Callable[[Tensor], Any], shape: Sequence[int], device: torch.device, *, most: int = 512
) -> int:
    """Return how many images [*shape] the function may receive at once: at most `most`, and at least one."""
    return max(1, min(most, call_bytes(device) // bytes_per_item(function, shape, device)))


def call_bytes(device: torch.device) -> int:
    """Return how many bytes the intermediate results of one call may take."""
    if device.type != "cuda":
        return _CPU_BYTES
    return max(_CPU_BYTES, min(_CUDA_BYTES, torch.cuda.mem_get_info(device)[0] // 4))
