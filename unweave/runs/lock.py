"""Locks between processes. The system releases the lock of a process that ends, however it ends."""

import errno
import json
import os
import socket
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

from unweave.errors import UserNotice

try:
    import fcntl
except ImportError:  # on Windows, where simultaneous writers are not detected
    fcntl = None  # type: ignore[assignment]


_UNSUPPORTED = (errno.ENOLCK, errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP)
_OTHER_FILES = 512  # that a process opens beside its locks


@contextmanager
def lock(path: Path, busy: Callable[[str], Exception] | None = None) -> Iterator[None]:
    """Hold the lock file at this path during the block.

    If another process holds it, raise the exception that `busy` returns for the description of the holder, such as
    "process 4711 on host node3"; without `busy`, wait. The file stays: its existence does not mean that it is locked.
    """
    if fcntl is None:
        yield
        return
    with open(path, "a+", opener=_without_following_links) as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | (fcntl.LOCK_NB if busy else 0))
        except BlockingIOError:
            assert busy is not None
            raise busy(_holder(file)) from None
        except OSError as error:
            if error.errno not in _UNSUPPORTED:
                raise
            message = f"'{path.parent}' is on a file system without locks: simultaneous writers are not detected"
            warnings.warn(message, UserNotice, stacklevel=3)
        _describe_holder(file)
        yield  # closing the file releases the lock


def allow_locks(count: int) -> int:
    """Raise the limit of open files such that so many locks can be held; return how many can."""
    if fcntl is None:
        return count
    import resource

    limit, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = count + _OTHER_FILES
    if limit != resource.RLIM_INFINITY and limit < wanted:
        raised = wanted if most == resource.RLIM_INFINITY else min(wanted, most)
        with suppress(ValueError, OSError):  # macOS has a lower limit than it states
            resource.setrlimit(resource.RLIMIT_NOFILE, (raised, most))
            limit = raised
    return count if limit == resource.RLIM_INFINITY else max(0, min(count, limit - _OTHER_FILES))


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
