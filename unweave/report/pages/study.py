"""The one-file HTML page of a study: every run as a dot beside what was published."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup
from scipy.stats import gaussian_kde

from unweave.errors import UserError
from unweave.report.charts.curves import ticks
from unweave.report.charts.strip_plot import axis_limits
from unweave.report.pages.run import HERE
from unweave.report.sweep_summary import words_for
from unweave.report.words import short
from unweave.runs import write_atomic

ROW, TOP = 22, 6  # pixels: a row of dots, above the first
LETTER = 6.6  # pixels, of a label in a wide face
ENOUGH = 8  # runs from which a family's row shows their density
HUMP = 20  # pixels, the density at its widest
Across = Callable[[float], float]  # a value's place, in per cent


class PublishedRange(NamedTuple):
    """A published number (both ends are it) or range, and its words."""

    low: float
    high: float
    words: str


class StripRow(NamedTuple):
    """The runs of one row, as values with their words, and what was published of it."""

    name: str
    pooled: bool  # a family, over all its settings
    colour: int
    points: Sequence[tuple[float, str]]
    median: float
    published: Sequence[PublishedRange]


class Panel(NamedTuple):
    """One score of all rows."""

    score: str
    strips: Sequence[StripRow]


class StudyTables(NamedTuple):
    """What the page says beside its drawings; every cell is text."""

    title: str
    paper: str
    question: str
    facts: Sequence[str]
    notes: Sequence[str]
    legend: Sequence[tuple[str, str]]  # marks of provenance and their meaning
    heads: Sequence[str]
    rows: Sequence[tuple[bool, Sequence[str]]]  # whether it is a family, its cells
    comparison_headers: Sequence[str]
    comparison: Sequence[Sequence[str]]
    sources: Sequence[str]  # of published numbers; the last cell beside them says which, from 1


def study_page(tables: StudyTables, panels: Sequence[Panel], out: str | Path) -> Path:
    """Write the page; returns where it is."""
    path = Path(out)
    environment = Environment(
        loader=FileSystemLoader(HERE), autoescape=True, trim_blocks=True, lstrip_blocks=True, undefined=StrictUndefined
    )
    style = "".join((HERE / name).read_text() for name in ("report.css", "compare.css", "study.css"))
    drawn = [
        {"title": words_for(panel.score)[0], "sentence": words_for(panel.score)[1], **draw(panel)} for panel in panels
    ]
    page = environment.get_template("study.html").render(tables=tables, panels=drawn, style=Markup(style))
    try:
        write_atomic(path, page.encode())
    except OSError as error:
        raise UserError(f"out '{out}' cannot be written: {error.strerror or error}; choose another folder") from error
    return path


def draw(panel: Panel) -> dict[str, object]:
    """The drawing of one score and the room its labels take on the left."""
    numbers = [value for strip in panel.strips for value, _ in strip.points]
    numbers += [end for strip in panel.strips for mark in strip.published for end in mark[:2]]
    low, high = axis_limits(numbers)
    bottom = TOP + ROW * len(panel.strips)

    def across(value: float) -> float:
        return 100 * (value - low) / (high - low)

    body = Markup("")
    for tick in ticks(low, high, False):
        line = Markup('<line class="grid" x1="{0:.2f}%" x2="{0:.2f}%" y1="0" y2="{1}"/>').format(across(tick), bottom)
        body += line + _text("tick", f"{across(tick):.2f}%", bottom + 15, short(tick), "middle")
    for place, strip in enumerate(panel.strips):
        body += _strip(strip, TOP + ROW * (place + 0.5), across)
    spoken = "; ".join(f"{strip.name} {short(strip.median)}" for strip in panel.strips if strip.points)
    svg = Markup('<svg style="height:{}px" role="img" aria-label="median {} of {}">{}</svg>')
    left = int(LETTER * max(len(strip.name) for strip in panel.strips)) + 16
    return {"svg": svg.format(bottom + 22, panel.score, spoken, body), "left": left}


def _strip(strip: StripRow, height: float, across: Across) -> Markup:
    kind = "tick value whole" if strip.pooled else "tick value"
    body = _text(kind, "-10", height + 4, strip.name, "end")
    for mark in strip.published:
        body += _mark(mark, height, across)
    if strip.pooled and len(strip.points) >= ENOUGH:
        body += _density(strip, height, across)
    for value, words in strip.points:
        dot = Markup('<circle class="dot run{}" cx="{:.2f}%" cy="{:.1f}" r="{}"><title>{}</title></circle>')
        body += dot.format(strip.colour, across(value), height, 2.5 if strip.pooled else 3.5, words)
    if len(strip.points) > 1:
        line = Markup('<line class="median" x1="{0:.2f}%" x2="{0:.2f}%" y1="{1:.1f}" y2="{2:.1f}"/>')
        body += line.format(across(strip.median), height - 7, height + 7)
    return body


def _density(strip: StripRow, height: float, across: Across) -> Markup:
    """How the runs lie, as a shape that is widest where most are; from the smallest to the largest, no further."""
    values = np.array([value for value, _ in strip.points])
    if np.ptp(values) < 1e-9 * max(1.0, float(np.abs(values).max())):
        return Markup("")
    places = np.linspace(values.min(), values.max(), 60)
    half = gaussian_kde(values)(places)
    half = 50.0 * half / half.max()
    upper = [f"{across(x):.2f},{50 - y:.1f}" for x, y in zip(places, half, strict=True)]
    lower = [f"{across(x):.2f},{50 + y:.1f}" for x, y in zip(places[::-1], half[::-1], strict=True)]
    # Its own little sheet, 100 by 100 whatever the size, since a path cannot be told in per cent.
    tables = Markup('<svg x="0" y="{:.1f}" width="100%" height="{}" viewBox="0 0 100 100" preserveAspectRatio="none">')
    shape = Markup('<polygon class="density run{}" points="{}"/></svg>')
    return tables.format(height - HUMP / 2, HUMP) + shape.format(strip.colour, " ".join(upper + lower))


def _mark(mark: PublishedRange, height: float, across: Across) -> Markup:
    """A bar from end to end; a single number is a stroke across the row."""
    start, end, title = across(mark.low), across(mark.high), Markup("<title>{}</title>").format(mark.words)
    if mark.low == mark.high:
        stroke = Markup('<line class="published" x1="{0:.2f}%" x2="{0:.2f}%" y1="{1:.1f}" y2="{2:.1f}">{3}</line>')
        return stroke.format(start, height - 9, height + 9, title)
    bar = Markup('<line class="published range" x1="{0:.2f}%" x2="{1:.2f}%" y1="{2:.1f}" y2="{2:.1f}">{3}</line>')
    return bar.format(start, end, height, title)


def _text(kind: str, across: str, height: float, text: str, anchor: str) -> Markup:
    shape = Markup('<text class="{}" x="{}" y="{:.1f}" text-anchor="{}">{}</text>')
    return shape.format(kind, across, height, anchor, text)
