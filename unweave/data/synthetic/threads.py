"""One thread for work made of many small steps."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch


@contextmanager
def single_thread() -> Iterator[None]:
    """Tensor operations on the CPU use one thread inside.

    Thousands of short operations gain little from more, and on a busy machine their threads wait for each other at
    the end of every one: what takes seconds on one thread was seen to take minutes on two.
    """
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)
