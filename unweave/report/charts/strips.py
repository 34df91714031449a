"""Strip plots of one score: a row per setting with a dot per run, the median and published numbers."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from markupsafe import Markup
from scipy.stats import gaussian_kde

from unweave.metrics import METRICS, describe
from unweave.report.charts.svg import axis_limits, dot, line, text, ticks
from unweave.report.formatting import short, short_title

ROW, TOP = 26, 6  # heights in pixels: of a row, above the first one
LETTER = 6.6  # width in pixels of a letter of a label
DENSITY_RUNS = 8  # number of runs from which a pooled row shows their density
DENSITY_HEIGHT = 20  # pixels
SMALL_DOT_RUNS = 15  # number of runs from which dots are smaller
Position = Callable[[float], float]  # horizontal position of a value, in per cent


class StripRow(NamedTuple):
    """The runs of one row, as values with descriptions, and the published numbers for it."""

    name: str
    pooled: bool  # a family: with the runs of all its settings, or the heading of their rows
    colour: int
    points: Sequence[tuple[float, str]]
    median: float
    published: Sequence[tuple[float, float, str]] = ()  # low, high (equal for a number), description
    offsets: Sequence[float] = ()  # vertical offset of each point in pixels; () is 0
    diverged: Sequence[str] = ()  # descriptions of runs that diverged
    best: bool = False


def draw(score: str, rows: Sequence[StripRow]) -> dict[str, Any]:
    """Return the drawing of one score, the width of its labels, and the title and description of the score."""
    numbers = [value for strip in rows for value, _ in strip.points]
    numbers += [end for strip in rows for published in strip.published for end in published[:2]]
    low, high = axis_limits(numbers)
    bottom = TOP + ROW * len(rows)

    def position(value: float) -> float:
        return 100 * (value - low) / (high - low)

    body = Markup("")
    for tick in ticks(low, high):
        x = position(tick)
        body += line("grid", (x, x), (0, bottom)) + text("tick", f"{x:.2f}%", bottom + 15, short(tick))
    for number, strip in enumerate(rows):
        body += _strip(strip, TOP + ROW * (number + 0.5), position)
    medians = "; ".join(f"{strip.name} {short(strip.median)}" for strip in rows if strip.points)
    svg = Markup('<svg style="height:{}px" role="img" aria-label="median {} of {}">{}</svg>')
    known = describe(score) if score.partition(".")[0] in METRICS else None
    title, sentence = (known.title, known.description) if known else (short_title(score), "")
    left = int(LETTER * max(len(strip.name) for strip in rows)) + 16
    return {"title": title, "sentence": sentence, "left": left, "svg": svg.format(bottom + 22, title, medians, body)}


def _strip(strip: StripRow, y: float, position: Position) -> Markup:
    body = text("tick value whole" if strip.pooled or strip.best else "tick value", "-10", y + 4, strip.name, "end")
    for low, high, words in strip.published:
        kind, reach = ("published", 9) if low == high else ("published range", 0)
        body += line(kind, (position(low), position(high)), (y - reach, y + reach), words)
    if strip.pooled and len(strip.points) >= DENSITY_RUNS:
        body += _density(strip, y, position)
    radius = 2.5 if strip.pooled or len(strip.points) >= SMALL_DOT_RUNS else 3.5
    for (value, words), offset in zip(strip.points, strip.offsets or [0.0] * len(strip.points), strict=True):
        body += dot(f"dot run{strip.colour}", position(value), y + offset, radius, words)
    if len(strip.points) > 1:
        x = position(strip.median)
        body += line("median", (x, x), (y - 7, y + 7))
    if strip.diverged:
        mark = Markup("{}×<title>{}</title>").format(len(strip.diverged), "; ".join(strip.diverged))
        body += text("lost", "101%", y + 4, mark, "start")
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
