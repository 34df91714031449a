"""Settings that need more memory than there is are refused by name, before the memory is used.

An allocation that is too large does not always fail: Linux grants it, and ends the process when it is filled.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import torch

from unweave.config.run_config import option_default
from unweave.config.settings import all_settings
from unweave.contract import DataInfo, Method, stages
from unweave.data.storage.memory_limit import usable_memory
from unweave.errors import UserError, invalid, is_out_of_memory
from unweave.methods import construct

TRAINING_COPIES = 4  # weights, their gradients, and two moments of Adam
_USUAL = 20  # a setting of less than so many times its default is not checked
_USUAL_IMAGE = 200_000  # values of an image; networks of larger ones are checked


def check_model_size(cls: type[Method], data: DataInfo, arguments: Mapping[str, Any], copies: int = 1) -> None:
    """Raise unless so many copies of the model fit into the memory of the host. Nothing is allocated."""
    if not is_unusual(cls, data, arguments):
        return
    size, previous = 0, None
    with memory_errors(cls, data, arguments), torch.device("meta"):  # tensors without memory
        for stage in stages(cls)[: 1 if copies == 1 else None]:
            previous = construct(stage, data, arguments, previous)
            size = max(size, sum(tensor.nbytes for tensor in previous.state_dict().values()))
    if copies * size > usable_memory():
        raise too_large(cls, data, arguments, needed=copies * size)


def is_unusual(cls: type[Method], data: DataInfo, arguments: Mapping[str, Any]) -> bool:
    """Return True if a setting is much larger than its default, or the images are large."""
    return _largest_setting(cls, arguments)[0] > _USUAL or math.prod(data.shape) > _USUAL_IMAGE


@contextmanager
def memory_errors(cls: type[Method], data: DataInfo, arguments: Mapping[str, Any], batch: int = 0) -> Iterator[None]:
    """Replace the error of an allocation that fails by one that names the setting that is largest."""
    try:
        yield
    except (MemoryError, RuntimeError) as error:  # of torch, which has a class for CUDA only
        if not is_out_of_memory(error):
            raise
        raise too_large(cls, data, arguments, batch) from error


def too_large(
    cls: type[Method], data: DataInfo, arguments: Mapping[str, Any], batch: int = 0, needed: float = 0
) -> UserError:
    """Return the error that names the setting which exceeds its default most, or the batch."""
    ratio, name, value = _largest_setting(cls, arguments)
    hint = "the memory does not suffice"
    if needed:
        hint = f"about {needed / 1e9:,.0f} GB of memory would be needed, and there are {usable_memory() / 1e9:,.0f} GB"
    excess = batch / option_default("batch")
    if batch and ratio <= max(1, excess) and (excess > 1 or math.prod(data.shape) <= _USUAL_IMAGE):
        return invalid("batch", batch, "smaller", context=cls.__name__, hint=f"{hint}; a smaller network also helps")
    if ratio <= 1:
        shape = " x ".join(map(str, data.shape))
        return invalid("data", f"images of {shape}", "of a smaller size", context=cls.__name__, hint=hint)
    return invalid(name, value, "smaller", context=cls.__name__, hint=hint)


def _largest_setting(cls: type[Method], arguments: Mapping[str, Any]) -> tuple[float, str, Any]:
    """Return ratio to the default, name and value of the integer setting with the largest ratio."""
    defaults = {name: parameter.default for name, parameter in all_settings(cls, arguments)[0].items()}
    integers = {
        name: value for name, value in arguments.items() if type(value) is int and type(defaults.get(name)) is int
    }
    return max(((value / max(defaults[name], 1), name, value) for name, value in integers.items()), default=(0, "", 0))
