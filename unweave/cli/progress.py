"""The progress display of a training run, or of many: rate, losses and time left."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from unweave.training.cohort import FleetProgress
from unweave.training.trainer import Progress as Record


def _losses(logs: dict[str, float]) -> str:
    return "  ".join(f"{name} {value:.4g}" for name, value in list(logs.items())[:4])


@contextmanager
def progress_observer(
    quiet: bool = False, label: str = "", console: Console | None = None
) -> Iterator[Callable[[Record], None]]:
    """An observer for `train` that draws a live line, or prints plain lines where there is no terminal."""
    console = console or Console(stderr=True)
    if quiet:
        yield lambda record: None
    elif not console.is_terminal:
        yield _plain_lines(console, label)
    else:
        columns = [TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn()]
        with Progress(
            *columns, TextColumn("{task.fields[rate]:.0f} steps/s  {task.fields[losses]}"), console=console
        ) as bar:
            tasks: dict[str, int] = {}

            def observe(record: Record) -> None:
                if record.stage not in tasks:
                    name = label or record.stage
                    tasks[record.stage] = bar.add_task(name, total=record.steps, rate=0.0, losses="")
                task = tasks[record.stage]
                bar.update(task, completed=record.step, rate=record.rate, losses=_losses(record.logs))  # type: ignore[arg-type]

            yield observe


def _plain_lines(console: Console, label: str) -> Callable[[Record], None]:
    """A line each tenth of the run, for logs."""
    last = -1

    def observe(record: Record) -> None:
        nonlocal last
        tenth = 10 * record.step // record.steps
        if tenth != last:
            last = tenth
            rate = f"{record.rate:.0f} steps/s, {record.remaining_seconds:.0f} s left"
            line = f"{label or record.stage} {record.step}/{record.steps}  {rate}  {_losses(record.logs)}"
            console.print(line, highlight=False, soft_wrap=True)

    return observe


@contextmanager
def sweep_progress_observer(
    quiet: bool = False, console: Console | None = None
) -> Iterator[Callable[[FleetProgress], None]]:
    """An observer for a fleet: runs finished, model-steps a second, time left."""
    console = console or Console(stderr=True)
    if quiet:
        yield lambda record: None
    elif not console.is_terminal:
        yield _plain_fleet(console)
    else:
        columns = [TextColumn("{task.fields[runs]}"), BarColumn(), TextColumn("{task.percentage:.0f} %")]
        with Progress(*columns, TextColumn("{task.fields[pace]}"), console=console) as bar:
            task = bar.add_task("", total=1, runs="getting ready", pace="")

            def observe(record: FleetProgress) -> None:
                bar.update(task, total=record.total, completed=record.done, runs=_runs(record), pace=_pace(record))

            yield observe


def _runs(record: FleetProgress) -> str:
    lost = f", {record.diverged} diverged" if record.diverged else ""
    return f"{record.finished} of {record.runs} runs{lost}"


def _pace(record: FleetProgress) -> str:
    minutes, seconds = divmod(round(record.remaining_seconds), 60)
    note = f"  {record.message}" if record.message else ""
    return f"{record.rate:,.0f} model-steps/s, {minutes}:{seconds:02d} left{note}"


def _plain_fleet(console: Console) -> Callable[[FleetProgress], None]:
    last = -1

    def observe(record: FleetProgress) -> None:
        nonlocal last
        tenth = 10 * record.done // record.total
        if tenth != last:
            last = tenth
            share = 100 * record.done // record.total
            console.print(f"{_runs(record)}, {share} %  {_pace(record)}", highlight=False, soft_wrap=True)

    return observe
