"""The progress display of a training run: rate, losses and time left."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from unweave.train import Progress as Record


def _losses(logs: dict[str, float]) -> str:
    return "  ".join(f"{name} {value:.4g}" for name, value in list(logs.items())[:4])


@contextmanager
def shown(quiet: bool = False, label: str = "", console: Console | None = None) -> Iterator[Callable[[Record], None]]:
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
            rate = f"{record.rate:.0f} steps/s, {record.left:.0f} s left"
            line = f"{label or record.stage} {record.step}/{record.steps}  {rate}  {_losses(record.logs)}"
            console.print(line, highlight=False, soft_wrap=True)

    return observe
