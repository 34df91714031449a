"""The folders of the runs in training: created, locked, and extended."""

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from functools import partial
from typing import Any

from unweave.config import RunConfig, read_config
from unweave.config.identity import complete_settings
from unweave.contract import Method, stages
from unweave.data.metadata import dataset_metadata
from unweave.data.used_labels import store_used_labels
from unweave.errors import UserError, UserNotice, invalid
from unweave.model import check_unchanged, checkpoint_step
from unweave.runs import WEIGHTS, RunFolder, damaged, versions
from unweave.runs.checkpoints import checkpoint_metadata, has_checkpoint, repair_checkpoint
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
    _report_writers(existing)
    free = _free_locks(len(existing) + len(new))
    with ExitStack() as locks:
        for run in existing:
            _hold(run.folder.locked(), locks, next(free))
        for run in existing:
            repair_checkpoint(run.folder)
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


def check_stored(run: RunFolder, config: RunConfig, cls: type[Method]) -> None:
    """Check the configuration of an existing run like that of a new one; raise if it was changed since the training."""
    metadata = run.read_metadata(WEIGHTS) if run.finished else checkpoint_metadata(run)
    check_unchanged(run, config, cls, metadata)
    try:
        complete_settings(config, cls)
    except UserError as error:
        message = f"run '{run.path}': in config.json, {error}"
        raise UserError(message, argument=error.argument, value=error.value, accepted=error.accepted) from error
    if missing := {player for stage in stages(cls) for player in stage.players} - config.optimizers.keys():
        raise damaged(run.path, f"in config.json, the optimizer of '{min(missing)}' is missing")


def _report_writers(runs: Sequence[Run]) -> None:
    """Give one notice for the runs of versions without digests, and one for those of each other version.

    The notice that nothing was verified is left out for runs without a digest of their data, which have one already.
    """
    found: dict[str, list[RunFolder]] = {}
    for run in runs:
        metadata, data_known = (
            checkpoint_metadata(run.folder),
            run.config.data_digest or "fingerprint" in str(run.config),
        )
        if has_checkpoint(run.folder) and ("digest" in metadata or data_known):
            found.setdefault(_describe_writer(metadata), []).append(run.folder)
    found.pop("", None)
    for text, folders in found.items():
        others = f" and {len(folders) - 1} others" if len(folders) > 1 else ""
        warnings.warn(f"run '{folders[0].path}'{others}: {text}", UserNotice, stacklevel=3)


def _describe_writer(metadata: Mapping[str, Any]) -> str:
    """Return in which way a checkpoint was written by another version, or ""."""
    if "digest" not in metadata:
        return "it stores no digests, so its checkpoint and its configuration could not be verified"
    changed = {n: (v, metadata["versions"].get(n)) for n, v in versions().items() if metadata["versions"].get(n) != v}
    return ", ".join(f"its checkpoint was written with {n} {then}, this is {now}" for n, (now, then) in changed.items())


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
    if folder.finished and not has_checkpoint(folder):
        hint = "the optimizer state of a finished run is kept only with keep_state"
        raise invalid("steps", steps, f"{before}, as in its configuration", context=context, hint=hint)
    if steps < (done := checkpoint_step(folder)):
        raise invalid("steps", steps, f"at least {done}, which are already trained", context=context)
