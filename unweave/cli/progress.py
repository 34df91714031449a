"""The progress display of training runs, and the message of an interruption."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn
from rich.table import Column

from unweave.errors import Interrupted

if TYPE_CHECKING:
    from unweave.training.progress import Progress as Record
    from unweave.training.progress import ProgressCallback as Observer


@contextmanager
def same_command_resumes() -> Iterator[None]:
    """Name the current command in the message of an interruption as the one that resumes the training."""
    try:
        yield
    except Interrupted as error:
        raise Interrupted(error.number, shlex.join(["unweave", *sys.argv[1:]])) from None


@contextmanager
def progress_observer(quiet: bool = False, label: str = "") -> Iterator[Observer]:
    """Yield an observer for `train` that draws a progress bar, or prints plain lines if there is no terminal."""
    console = Console(stderr=True)
    if quiet:
        yield lambda record: None
    elif not console.is_terminal:
        yield _lines(console, lambda r: (f"{label or r.stage} {r.step}/{r.steps}  {_state(r)}", r.step / r.steps))
    else:
        text = TextColumn("{task.fields[text]}", table_column=Column(ratio=1, no_wrap=True, overflow="ellipsis"))
        columns = [TextColumn("{task.description}"), BarColumn(bar_width=20), MofNCompleteColumn(), text]
        with Progress(*columns, console=console, expand=True) as bar:
            tasks: dict[str, TaskID] = {}

            def observe(record: Record) -> None:
                if record.stage not in tasks:
                    tasks[record.stage] = bar.add_task(label or record.stage, total=record.steps, text="")
                bar.update(tasks[record.stage], completed=record.step, text=_state(record))

            yield observe


@contextmanager
def sweep_progress_observer(quiet: bool = False) -> Iterator[Observer]:
    """Yield an observer for many runs: runs finished, model-steps per second, time left."""
    console = Console(stderr=True)
    if quiet:
        yield lambda record: None
    elif not console.is_terminal:
        yield _lines(console, lambda r: (f"{_runs(r)}, {100 * r.done // r.total} %  {_pace(r)}", r.done / r.total))
    else:
        columns = [TextColumn("{task.fields[runs]}"), BarColumn(), TextColumn("{task.percentage:.0f} %")]
        with Progress(*columns, TextColumn("{task.fields[pace]}"), console=console) as bar:
            task = bar.add_task("", total=1, runs="preparing", pace="")

            def observe(record: Record) -> None:
                bar.update(task, total=record.total, completed=record.done, runs=_runs(record), pace=_pace(record))

            yield observe


def _lines(console: Console, describe: Callable[[Record], tuple[str, float]]) -> Observer:
    """Return an observer that prints a line for each tenth of the training; `describe` returns it and the share."""
    last: object = None

    def observe(record: Record) -> None:
        nonlocal last
        line, share = describe(record)
        if (current := record.message or int(10 * share)) != last:
            last = current
            console.print(line, highlight=False, soft_wrap=True)

    return observe


def _rate(record: Record, unit: str = "steps/s") -> str:
    """Return the rate of the last seconds and the time left; "" if they are not yet known."""
    minutes, seconds = divmod(round(record.remaining_seconds), 60)
    return f"{record.rate:,.0f} {unit}, {minutes}:{seconds:02d} left" if record.rate else ""


def _state(record: Record) -> str:
    """Return the message of a single run, or its rate and first logged quantities."""
    logs = "  ".join(f"{name} {value:.4g}" for name, value in list(record.logs.items())[:4])
    return record.message or f"{_rate(record)}  {logs}"


def _runs(record: Record) -> str:
    diverged = f", {record.diverged} diverged" if record.diverged else ""
    return f"{record.finished} of {record.runs} runs{diverged}"


def _pace(record: Record) -> str:
    return "  ".join(text for text in (_rate(record, "model-steps/s"), record.message) if text)
