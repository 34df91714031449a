"""What a training run reports to `observe`: position, logged quantities, and the rate of the last seconds."""

import time
from collections import deque
from collections.abc import Callable
from typing import NamedTuple

RATE_SECONDS = 10.0  # the rate is measured over this time


class Progress(NamedTuple):
    """Progress of one or many runs, passed to `observe` after each log record and before a step is compiled."""

    stage: str  # class name of the method of the current stage
    step: int  # of the run that is furthest behind
    steps: int
    logs: dict[str, float]  # of a single run; empty for several
    runs: int
    finished: int
    diverged: int
    done: int  # training steps of all runs together
    total: int
    rate: float  # training steps of all runs per second, over the last seconds; 0 if not yet known
    remaining_seconds: float
    message: str = ""


ProgressCallback = Callable[[Progress], None]


class ProgressMeter:
    """Counts the steps of all runs together and calls the observer."""

    def __init__(self, runs: int, total: int, observe: ProgressCallback | None) -> None:
        self.runs, self.total, self.observe = runs, total, observe
        self.done = 0  # including steps of runs that were trained before, which do not count for the rate
        self.finished = self.diverged = 0
        self.message = ""
        self.history: deque[tuple[float, int]] = deque()  # (time, steps made so far), the last seconds

    def close(self, finished: int, diverged: int) -> None:
        """Count the runs of a cohort that has ended."""
        self.finished += finished - diverged
        self.diverged += diverged

    def start_clock(self) -> None:
        """Start to measure the rate, after compilation."""
        self.history = deque([(time.monotonic(), self.done)])

    def advance(self, steps: int) -> None:
        now = time.monotonic()
        self.done += steps
        self.history.append((now, self.done))
        while len(self.history) > 2 and now - self.history[1][0] > RATE_SECONDS:
            self.history.popleft()

    def report(
        self, stage: str, step: int, steps: int, logs: dict[str, float], *, finished: int = 0, diverged: int = 0
    ) -> None:
        """Call the observer; `finished` and `diverged` count runs of the cohort in training."""
        if self.observe:
            (began, before), (now, after) = (self.history[0], self.history[-1]) if self.history else ((0.0, 0),) * 2
            rate = (after - before) / max(now - began, 1e-9)
            remaining = (self.total - self.done) / rate if rate else 0.0
            counts = (self.runs, self.finished + finished, self.diverged + diverged, self.done, self.total)
            self.observe(Progress(stage, step, steps, logs, *counts, rate, remaining, self.message))
