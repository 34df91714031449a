"""How many bytes a data set may hold in the memory of the host and of a GPU."""

import os
from collections.abc import Iterator
from pathlib import Path

import torch

_UNKNOWN_MEMORY = 16 << 30  # assumed on systems that do not report their memory


def memory_limit() -> int:
    """Return the largest data set in bytes that is held in memory: half of what the process may use on the host."""
    return usable_memory() // 2


def usable_memory() -> int:
    """Return the bytes of host memory that the process may use: those of the machine, or of its control group."""
    return min(_physical_memory(), *cgroup_limits())


def device_memory_limit(device: torch.device | str) -> int:
    """Return the largest data set in bytes that is held on a CUDA device: half of its memory."""
    return torch.cuda.mem_get_info(device)[1] // 2


def _physical_memory() -> int:
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (ValueError, OSError, AttributeError):  # on Windows
        return _UNKNOWN_MEMORY


def cgroup_limits(root: Path = Path("/")) -> list[int]:
    """Return the memory limits of the control groups (versions 1 and 2) of this process and of the groups above."""
    groups = root / "sys" / "fs" / "cgroup"
    limits: list[int] = []
    for line in _read(root / "proc" / "self" / "cgroup").splitlines():
        controllers, _, path = line.partition(":")[2].partition(":")
        if not controllers:
            limits += _limits_upwards(groups, path, "memory.max")
        elif "memory" in controllers.split(","):
            limits += _limits_upwards(groups / "memory", path, "memory.limit_in_bytes")
    return limits


def _limits_upwards(top: Path, path: str, name: str) -> Iterator[int]:
    """Yield the limits of a group and of those that contain it; inside a container, only the upper ones may exist."""
    group = top / path.strip().lstrip("/")
    for folder in (group, *group.parents):
        if folder.is_relative_to(top):
            text = _read(folder / name).strip()  # "max" if there is no limit
            if text.isdecimal():
                yield int(text)


def _read(path: Path) -> str:
    try:
        return path.read_text()
    except (OSError, ValueError):
        return ""
