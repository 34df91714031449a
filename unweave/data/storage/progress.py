"""Progress of downloads and conversions, shown as a bar or passed to an observer."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

Observer = Callable[[str, int, int | None], None]  # description, amount done, total amount (if known)

_observer: ContextVar[Observer | None] = ContextVar("observer", default=None)


@contextmanager
def observe_progress(observer: Observer) -> Iterator[None]:
    """Within the block, call the observer instead of drawing a bar."""
    before = _observer.set(observer)
    try:
        yield
    finally:
        _observer.reset(before)


@contextmanager
def progress_task(name: str, total: int | None, unit: str) -> Iterator[Callable[[int], None]]:
    """Yield a function to call with the amount done so far; without an observer it moves a bar, on a terminal only."""
    observer = _observer.get()
    if observer is not None:
        yield lambda done: observer(name, done, total)
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    console = Console(stderr=True)
    columns = [TextColumn("{task.description}", markup=False), BarColumn(), TextColumn("{task.completed:,.0f}" + unit)]
    hidden = not console.is_terminal
    with Progress(*columns, TimeRemainingColumn(), console=console, transient=True, disable=hidden) as bar:
        task = bar.add_task(name, total=total)
        yield lambda done: bar.update(task, completed=done)
