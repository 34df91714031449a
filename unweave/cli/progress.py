"""The progress display of training runs, and the message of an interruption."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn
from rich.table import Column

from unweave.cli import PlainConsole
from unweave.errors import Interrupted

if TYPE_CHECKING:
    from unweave.training.progress import Progress as TrainingProgress
    from unweave.training.progress import ProgressCallback


@contextmanager
def same_command_resumes() -> Iterator[None]:
    """Name the current command in the message of an interruption as the one that resumes the training."""
    try:
        yield
    except Interrupted as error:
        raise Interrupted(error.signum, shlex.join(["unweave", *sys.argv[1:]])) from None


@contextmanager
def progress_observer(quiet: bool = False, label: str = "") -> Iterator[ProgressCallback]:
    """Yield an observer for `train` that draws a progress bar, or prints plain lines if there is no terminal."""
    console = PlainConsole(stderr=True)
    if quiet:
        yield lambda progress: None
    elif not console.is_terminal:
        yield _lines(console, lambda r: (f"{label or r.stage} {r.step}/{r.steps}  {_state(r)}", r.step / r.steps))
    else:
        text = TextColumn(
            "{task.fields[text]}", markup=False, table_column=Column(ratio=1, no_wrap=True, overflow="ellipsis")
        )
        columns = [TextColumn("{task.description}", markup=False), BarColumn(bar_width=20), MofNCompleteColumn(), text]
        with Progress(*columns, console=console, expand=True) as bar:
            tasks: dict[str, TaskID] = {}

            def observe(progress: TrainingProgress) -> None:
                if progress.stage not in tasks:
                    tasks[progress.stage] = bar.add_task(label or progress.stage, total=progress.steps, text="")
                bar.update(tasks[progress.stage], completed=progress.step, text=_state(progress))

            yield observe


@contextmanager
def sweep_progress_observer(quiet: bool = False) -> Iterator[ProgressCallback]:
    """Yield an observer for many runs: runs finished, model-steps per second, time left."""
    console = PlainConsole(stderr=True)
    if quiet:
        yield lambda progress: None
    elif not console.is_terminal:
        yield _lines(
            console, lambda r: (f"{_runs(r)}, {100 * r.done // r.total} %  {_fleet_rate(r)}", r.done / r.total)
        )
    else:
        columns = [TextColumn("{task.fields[runs]}", markup=False), BarColumn(), TextColumn("{task.percentage:.0f} %")]
        with Progress(*columns, TextColumn("{task.fields[rate]}", markup=False), console=console) as bar:
            task = bar.add_task("", total=1, runs="preparing", rate="")

            def observe(progress: TrainingProgress) -> None:
                runs, rate = _runs(progress), _fleet_rate(progress)
                bar.update(task, total=progress.total, completed=progress.done, runs=runs, rate=rate)

            yield observe


def _lines(console: PlainConsole, describe: Callable[[TrainingProgress], tuple[str, float]]) -> ProgressCallback:
    """Return an observer that prints a line per tenth of the training; `describe` returns it and the share done."""
    last: object = None

    def observe(progress: TrainingProgress) -> None:
        nonlocal last
        line, share = describe(progress)
        if (current := progress.message or int(10 * share)) != last:
            last = current
            console.print(line)

    return observe


def _rate(progress: TrainingProgress, unit: str = "steps/s") -> str:
    """Return the rate of the last seconds and the time left; "" if they are not yet known."""
    minutes, seconds = divmod(round(progress.remaining_seconds), 60)
    return f"{progress.rate:,.0f} {unit}, {minutes}:{seconds:02d} left" if progress.rate else ""


def _state(progress: TrainingProgress) -> str:
    """Return the message of a single run, or its rate and first logged quantities."""
    logs = "  ".join(f"{name} {value:.4g}" for name, value in list(progress.logs.items())[:4])
    return progress.message or f"{_rate(progress)}  {logs}"


def _runs(progress: TrainingProgress) -> str:
    diverged = f", {progress.diverged} diverged" if progress.diverged else ""
    return f"{progress.finished} of {progress.runs} runs{diverged}"


def _fleet_rate(progress: TrainingProgress) -> str:
    return "  ".join(text for text in (_rate(progress, "model-steps/s"), progress.message) if text)
