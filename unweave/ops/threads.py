"""Limit the number of threads of torch."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch


@contextmanager
def single_thread() -> Iterator[None]:
    """Run the block, or the decorated function, with one torch thread.

    Short operations gain little from several threads, which wait for each other after every operation. On a busy
    machine, 0.15 s of operations of a few milliseconds took 2.5 s with several threads.
    """
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)
