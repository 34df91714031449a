"""The folder of cached arrays and downloads."""

import io
import os
import warnings
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import numpy as np

from unweave.errors import UserError, UserNotice
from unweave.runs import write_atomic
from unweave.runs.lock import lock


def cache_dir() -> Path:
    """Return `$UNWEAVE_CACHE`, else `$XDG_CACHE_HOME/unweave`, else `~/.cache/unweave`."""
    if chosen := os.environ.get("UNWEAVE_CACHE"):
        return Path(chosen)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "unweave"


def cache_error(folder: Path, reason: OSError | str) -> UserError:
    """Return the error for a cache folder that cannot be written."""
    accepted = "a writable folder with enough space, set by UNWEAVE_CACHE"
    reason = (reason.strerror or str(reason)) if isinstance(reason, OSError) else reason
    message = f"cache folder '{folder}' cannot be written ({reason}); free space, or set UNWEAVE_CACHE to another one"
    return UserError(message, argument="UNWEAVE_CACHE", value=str(folder), accepted=accepted)


@contextmanager
def cache_lock(name: str) -> Iterator[None]:
    """Let one process at a time make the cached data of this name; others wait.

    Without effect if the cache is not writable: then each process makes its own.
    """
    path = cache_dir() / "locks" / name
    with ExitStack() as stack:
        with suppress(OSError):
            path.parent.mkdir(parents=True, exist_ok=True)
            try:
                stack.enter_context(lock(path, _Busy))
            except _Busy as busy:
                warnings.warn(f"waiting for {busy}, which prepares the same data", UserNotice, stacklevel=3)
                stack.enter_context(lock(path))
        yield


class _Busy(Exception):
    """Another process holds the lock."""


def cached_array(name: str, shape: tuple[int, ...], make: Callable[[], np.ndarray]) -> np.ndarray:
    """Return the array of this name, computed and stored on first use; a cache that is not writable is ignored."""
    path = cache_dir() / f"{name}.npz"
    try:
        with open(path, "rb") as file, np.load(file, allow_pickle=False) as stored:
            array = stored["array"]
        if array.shape == shape:
            return array
    except Exception:  # absent or damaged
        pass
    array = make()
    buffer = io.BytesIO()
    np.savez_compressed(buffer, array=array)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomic(path, buffer.getvalue())
    except OSError:
        pass
    return array
