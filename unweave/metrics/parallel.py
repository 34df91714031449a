"""Independent pieces of work on several cores."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

import torch

from unweave.ops.threads import single_thread

Job = TypeVar("Job")
Result = TypeVar("Result")


def is_cpu(device: torch.device | str | None) -> bool:
    """Whether work for this device is done by the CPU's cores."""
    return device is None or torch.device(device).type == "cpu"


def parallel_map(
    work: Callable[[Job], Result], jobs: Sequence[Job], device: torch.device | str | None = None
) -> list[Result]:
    """The result of each job, in their order; as many jobs at once as torch may use threads.

    Every job keeps to one thread: small operations gain little from being divided between the cores. Work for a GPU is
    one queue whoever fills it, so it is filled by one thread.
    """
    threads = min(torch.get_num_threads(), len(jobs)) if is_cpu(device) else 1
    with single_thread():
        if threads < 2:
            return [work(job) for job in jobs]
        with ThreadPoolExecutor(threads, initializer=torch.set_num_threads, initargs=(1,)) as pool:
            return list(pool.map(work, jobs))
