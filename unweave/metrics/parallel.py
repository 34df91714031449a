"""Run independent jobs on several cores."""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

import torch

from unweave.ops.threads import single_thread

Job = TypeVar("Job")
Result = TypeVar("Result")
Device = torch.device | str | None


def is_cpu(device: Device) -> bool:
    """Return True if the device is the CPU, which None stands for."""
    return device is None or torch.device(device).type == "cpu"


def parallel_map(work: Callable[[Job], Result], jobs: Sequence[Job], device: Device = None) -> list[Result]:
    """Return the result of each job, in order. On a CPU, up to torch.get_num_threads() jobs run in parallel.

    Each job uses one thread, because small operations gain little from several cores. Jobs for a GPU run one by one.
    """
    threads = min(torch.get_num_threads(), len(jobs)) if is_cpu(device) else 1
    with single_thread():
        if threads < 2:
            return [work(job) for job in jobs]
        with ThreadPoolExecutor(threads, initializer=torch.set_num_threads, initargs=(1,)) as pool:
            return list(pool.map(work, jobs))
