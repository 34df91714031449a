"""Telling somebody how far a long piece of work has come: a download, or a file being converted."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from tqdm import tqdm  # type: ignore[import-untyped]

Observer = Callable[[str, int, int | None], None]  # what is done, how much of it is, how much there is (if known)

_observer: ContextVar[Observer | None] = ContextVar("observer", default=None)


@contextmanager
def observe_progress(observer: Observer) -> Iterator[None]:
    """Inside, the observer is told instead of a bar drawn."""
    before = _observer.set(observer)
    try:
        yield
    finally:
        _observer.reset(before)


@contextmanager
def progress_task(what: str, total: int | None, unit: str) -> Iterator[Callable[[int], None]]:
    """A function to call with the amount done so far. Without an observer it moves a bar, on a terminal only."""
    observer = _observer.get()
    if observer is not None:
        yield lambda done: observer(what, done, total)
        return
    with tqdm(total=total, desc=what, unit=unit, unit_scale=True, disable=None, leave=False) as bar:

        def move(done: int) -> None:
            bar.update(done - bar.n)

        yield move
