"""The folders of the runs in training: created, locked, and extended."""

import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from functools import partial

from unweave.config import read_config
from unweave.contract import Method, stages
from unweave.data.metadata import dataset_metadata
from unweave.data.used_labels import store_used_labels
from unweave.errors import UserNotice, invalid
from unweave.model import checkpoint_step
from unweave.runs import CHECKPOINT, WEIGHTS, RunFolder
from unweave.runs.files import remove_leftover_folders
from unweave.runs.lock import allow_locks
from unweave.training.cohort import Run


@contextmanager
def open_folders(runs: Sequence[Run], check_signals: Callable[[], None]) -> Iterator[None]:
    """Create the folders of new runs, and hold the locks of all unfinished ones until the block ends.

    Existing folders are locked first, so that nothing is written if another process trains one of them. Finished runs
    are only read and need no lock.
    """
    existing = [run for run in runs if run.folder.on_disk and not run.new and not _is_complete(run)]
    new = [run for run in runs if run.new]
    free = _free_locks(len(existing) + len(new))
    with ExitStack() as locks:
        for run in existing:
            _hold(run.folder.locked(), locks, next(free))
        for run in existing:
            _store_steps(run)
        for run in new:
            info = dataset_metadata(run.data, run.supervision, run.config.seed)
            labels = partial(store_used_labels, data=run.data, supervision=run.supervision, seed=run.config.seed)
            _hold(run.folder.create(run.config.to_json(), info, labels), locks, next(free))
            check_signals()
        for parent in {run.folder.path.parent for run in new}:
            with suppress(OSError):
                remove_leftover_folders(parent)
        yield


def _free_locks(count: int) -> Iterator[bool]:
    """Yield True for each of `count` locks that this process can hold: each is an open file."""
    free = allow_locks(count)
    if free < count:
        message = f"only {free:,} of {count:,} run folders are locked, because this process may not open more files"
        warnings.warn(f"{message}; do not train them in another process", UserNotice, stacklevel=3)
    return iter([True] * free + [False] * (count - free))


def _hold(lock: AbstractContextManager[None], locks: ExitStack, free: bool) -> None:
    """Hold a lock until `locks` is closed; if none is free, only make sure that no other process holds it now."""
    if free:
        locks.enter_context(lock)
    else:
        with lock:
            pass


def _is_complete(run: Run) -> bool:
    return run.folder.finished and read_config(run.folder).steps == run.config.steps


def _store_steps(run: Run) -> None:
    """Write the number of steps of a run that is extended."""
    stored = read_config(run.folder)
    if stored.steps != run.config.steps:
        check_extension(run.folder, run.cls, stored.steps, run.config.steps)  # again, now that it is locked
        run.folder.remove(WEIGHTS)  # first, so that a run never seems finished before its last step
        run.folder.write_json("config.json", run.config.to_json())


def check_extension(folder: RunFolder, cls: type[Method], before: int, steps: int) -> None:
    """Raise unless a run of `before` steps can be extended to `steps`."""
    context = f"run '{folder.path}'"
    if len(stages(cls)) > 1:
        hint = "a run of several stages has a fixed length"
        raise invalid("steps", steps, f"{before}, as in its configuration", context=context, hint=hint)
    if folder.finished and not folder.has(CHECKPOINT):
        hint = "the optimizer state of a finished run is kept only with keep_state"
        raise invalid("steps", steps, f"{before}, as in its configuration", context=context, hint=hint)
    if steps < (done := checkpoint_step(folder)):
        raise invalid("steps", steps, f"at least {done}, which are already trained", context=context)
