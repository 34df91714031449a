"""Locks between processes. The system releases the lock of a process that ends, however it ends."""

import json
import os
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

try:
    import fcntl
except ImportError:  # on Windows, where simultaneous writers are not detected
    fcntl = None  # type: ignore[assignment]


@contextmanager
def lock(path: Path, busy: Callable[[str], Exception] | None = None) -> Iterator[None]:
    """Hold the lock file at this path during the block.

    If another process holds it, raise the exception that `busy` returns for the description of the holder, such as
    "process 4711 on host node3"; without `busy`, wait. The file stays: its existence does not mean that it is locked.
    """
    with open(path, "a+", opener=_without_following_links) as file:
        if fcntl is not None:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | (fcntl.LOCK_NB if busy else 0))
            except BlockingIOError:
                assert busy is not None
                raise busy(_holder(file)) from None
        _describe_holder(file)
        yield  # closing the file releases the lock


def _without_following_links(path: str, flags: int) -> int:
    return os.open(path, flags | getattr(os, "O_NOFOLLOW", 0), 0o666)


def _describe_holder(file: IO[str]) -> None:
    file.truncate(0)
    json.dump({"process": os.getpid(), "host": socket.gethostname(), "since": int(time.time())}, file)
    file.flush()


def _holder(file: IO[str]) -> str:
    """Return who holds the lock; the text may be incomplete while the holder writes it."""
    try:
        file.seek(0)
        found = json.load(file)
        return f"process {found['process']} on host {found['host']}"
    except (ValueError, KeyError, TypeError, OSError):
        return "another process"
