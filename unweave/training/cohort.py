"""Cohorts: runs whose steps have the same structure, which train as the replicas of one fleet.

Seeds, hyperparameters, learning rates, clipping and numbers of steps may differ in a cohort. A cohort that does not
fit into memory is split into parts of equal size.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import torch

from unweave.config import RunConfig
from unweave.contract import Method
from unweave.data import Dataset
from unweave.data.supervision import Supervision
from unweave.runs import RunFolder
from unweave.training.progress import ProgressMeter

_MEMORY_SHARE = 0.8


class Run(NamedTuple):
    """One run: its folder, its configuration, its method, its data, and its supervision parsed for the data."""

    folder: RunFolder
    config: RunConfig
    cls: type[Method]
    data: Dataset
    supervision: Supervision
    new: bool = False  # its folder is created when the training starts


def group_into_cohorts(runs: Sequence[Run]) -> list[list[int]]:
    """Return the indices of the runs of each cohort. Runs on data that are not resident are trained one by one."""
    groups: dict[str, list[int]] = {}
    for index, run in enumerate(runs):
        alone = index if not run.data.resident else ""
        groups.setdefault(f"{run.config.cohort_key()} {id(run.data)} {alone}", []).append(index)
    return list(groups.values())


def choose_strategy(strategy: str, cohort: Sequence[Run]) -> str:
    """Resolve "auto": batched layers are faster on CUDA from two runs on, the loop on a CPU (benchmarks/speed)."""
    if strategy != "auto":
        return strategy
    return "batched" if len(cohort) > 1 and cohort[0].config.device.startswith("cuda") else "loop"


def split_to_fit(
    cohort: Sequence[Run], train_briefly: Callable[[Sequence[Run]], None], meter: ProgressMeter
) -> list[Sequence[Run]]:
    """Split a cohort into equal parts if it is too large for the device.

    `train_briefly` trains the given runs for one step.
    """
    max_size = _largest_fleet(cohort, train_briefly)
    if len(cohort) <= max_size:
        return [cohort]
    count = -(-len(cohort) // max_size)
    size = -(-len(cohort) // count)
    meter.message = f"{len(cohort)} runs do not fit into memory together: {count} parts of at most {size}"
    return [cohort[i : i + size] for i in range(0, len(cohort), size)]


def _largest_fleet(cohort: Sequence[Run], train_briefly: Callable[[Sequence[Run]], None]) -> int:
    """Return how many replicas fit, extrapolated from the memory of fleets of two and of four."""
    device = cohort[0].config.device
    if not device.startswith("cuda") or len(cohort) < 8:
        return len(cohort)
    peaks = []
    for count in (2, 4):
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats(device)
        before = torch.cuda.memory_allocated(device)
        train_briefly(cohort[:count])
        peaks.append(torch.cuda.max_memory_allocated(device) - before)
    torch.cuda.empty_cache()
    free = torch.cuda.mem_get_info(device)[0]
    return max(1, int(_MEMORY_SHARE * free / max((peaks[1] - peaks[0]) / 2, 1)))
