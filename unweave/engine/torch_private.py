"""The names of torch that are not public. No other file of the package uses one.

A later version of torch may move them. Runs then use the loop engine, see `replicas.resolve_engine`.
"""

import functools
import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import torch


class PrivateNames(NamedTuple):
    make_fx: Callable[..., Any]  # records a function as a list of tensor operations
    compile_fx: Callable[..., Any]  # Inductor, which compiles such a list
    InductorError: type[Exception]
    to_copy: Any  # operations that occur in recorded steps
    unsafe_view: Any


@functools.cache
def private_names() -> PrivateNames:
    """Import the names, which takes about a second; raise ImportError or AttributeError if torch lacks one."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # deprecations inside torch
        from torch._inductor.compile_fx import compile_fx
        from torch._inductor.exc import InductorError
        from torch.fx.experimental.proxy_tensor import make_fx
    aten = torch.ops.aten
    return PrivateNames(make_fx, compile_fx, InductorError, aten._to_copy.default, aten._unsafe_view.default)


def missing_name() -> str:
    """Return the error of the first name that this version of torch lacks, or ""."""
    try:
        private_names()
    except (ImportError, AttributeError) as error:
        return str(error).partition("\n")[0]
    return ""
