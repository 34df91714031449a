"""Strip plots of one score over the rows of a study: a dot per run, and the published numbers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from markupsafe import Markup
from scipy.stats import gaussian_kde

from unweave.report.charts.svg import axis_limits, dot, line, text, ticks
from unweave.report.formatting import short

ROW, TOP = 22, 6  # heights in pixels: of a row, above the first one
LETTER = 6.6  # width in pixels of a letter of a label
DENSITY_RUNS = 8  # number of runs from which a family's row shows their density
DENSITY_HEIGHT = 20  # pixels
Position = Callable[[float], float]  # horizontal position of a value, in per cent


class PublishedRange(NamedTuple):
    """A published range, or a number if both ends are equal, and its description."""

    low: float
    high: float
    words: str


class StripRow(NamedTuple):
    """The runs of one row, as values with descriptions, and the published numbers for it."""

    name: str
    pooled: bool  # a family with the runs of all its settings
    colour: int
    points: Sequence[tuple[float, str]]
    median: float
    published: Sequence[PublishedRange]


class ScoreStrips(NamedTuple):
    """One score of all rows."""

    score: str
    strips: Sequence[StripRow]


def draw(plot: ScoreStrips) -> dict[str, object]:
    """Return the drawing of one score and the width of its labels."""
    numbers = [value for strip in plot.strips for value, _ in strip.points]
    numbers += [end for strip in plot.strips for published in strip.published for end in published[:2]]
    low, high = axis_limits(numbers)
    bottom = TOP + ROW * len(plot.strips)

    def position(value: float) -> float:
        return 100 * (value - low) / (high - low)

    body = Markup("")
    for tick in ticks(low, high):
        x = position(tick)
        body += line("grid", (x, x), (0, bottom)) + text("tick", f"{x:.2f}%", bottom + 15, short(tick))
    for number, strip in enumerate(plot.strips):
        body += _strip(strip, TOP + ROW * (number + 0.5), position)
    description = "; ".join(f"{strip.name} {short(strip.median)}" for strip in plot.strips if strip.points)
    svg = Markup('<svg style="height:{}px" role="img" aria-label="median {} of {}">{}</svg>')
    left = int(LETTER * max(len(strip.name) for strip in plot.strips)) + 16
    return {"svg": svg.format(bottom + 22, plot.score, description, body), "left": left}


def _strip(strip: StripRow, y: float, position: Position) -> Markup:
    body = text("tick value whole" if strip.pooled else "tick value", "-10", y + 4, strip.name, "end")
    for published in strip.published:
        start, end = position(published.low), position(published.high)
        number = published.low == published.high
        kind, reach = ("published", 9) if number else ("published range", 0)
        body += line(kind, (start, end), (y - reach, y + reach), published.words)
    if strip.pooled and len(strip.points) >= DENSITY_RUNS:
        body += _density(strip, y, position)
    for value, words in strip.points:
        body += dot(f"dot run{strip.colour}", position(value), y, 2.5 if strip.pooled else 3.5, words)
    if len(strip.points) > 1:
        x = position(strip.median)
        body += line("median", (x, x), (y - 7, y + 7))
    return body


def _density(strip: StripRow, y: float, position: Position) -> Markup:
    """Return the kernel density estimate of the runs, from the smallest to the largest value."""
    values = np.array([value for value, _ in strip.points])
    if np.ptp(values) < 1e-9 * max(1.0, float(np.abs(values).max())):
        return Markup("")
    grid = np.linspace(values.min(), values.max(), 60)
    half = gaussian_kde(values)(grid)
    half = 50.0 * half / half.max()
    upper = [f"{position(x):.2f},{50 - h:.1f}" for x, h in zip(grid, half, strict=True)]
    lower = [f"{position(x):.2f},{50 + h:.1f}" for x, h in zip(grid[::-1], half[::-1], strict=True)]
    # A nested svg of 100 by 100 units, since the points of a polygon cannot be percentages.
    frame = Markup('<svg x="0" y="{:.1f}" width="100%" height="{}" viewBox="0 0 100 100" preserveAspectRatio="none">')
    shape = Markup('<polygon class="density run{}" points="{}"/></svg>')
    return frame.format(y - DENSITY_HEIGHT / 2, DENSITY_HEIGHT) + shape.format(strip.colour, " ".join(upper + lower))
