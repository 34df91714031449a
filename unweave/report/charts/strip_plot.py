"""One score over all runs as SVG: a dot a run, a line at the median of each setting, a drawing a method.

Places across are in per cent and heights in pixels, so a drawing takes any width and its letters keep their size.
Colours are the style sheet's; place and label alone tell everything.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from markupsafe import Markup

from unweave.report.charts.agreement import short_title
from unweave.report.charts.curves import ticks
from unweave.report.sweep_summary import Family, Group, sign
from unweave.report.words import format_number, short

TOP, PLOT, LINE = 8, 168, 16  # pixels: above the plot, the plot, a line under it
LETTER = 7.2  # pixels, of a label in a wide face
COLUMN = 30  # pixels, the narrowest column
SPREAD = 0.62  # of a column is taken by its dots
MANY = 15  # seeds from which dots are drawn smaller


class Facet(NamedTuple):
    """The drawing of one method."""

    heading: str
    svg: Markup
    left: int  # pixels beside it for the names of its settings
    narrowest: int  # pixels under which its labels would touch
    columns: int


class Layout(NamedTuple):
    """What all drawings of one score have in common."""

    score: str
    low: float
    high: float
    shift: Mapping[int, float]  # of each seed from the middle of its column, in columns
    lane: int  # pixels under the plot for the crosses of runs that diverged
    best: list[Group]

    def height(self, value: float) -> float:
        return TOP + PLOT * (1.0 - (value - self.low) / (self.high - self.low))

    def label_height(self, line: int) -> int:
        return TOP + PLOT + self.lane + 3 + LINE * (line + 1)


def facets(found: Sequence[Family], score: str) -> list[Facet]:
    """All methods on one axis; none without a single value."""
    groups = [group for family in found for group in family.groups]
    values = [float(value) for group in groups for value in group.scores(score)]
    if not values:
        return []
    seeds = sorted({seed for group in groups for seed in group.runs["seed"]})
    shift = {seed: SPREAD * ((rank + 0.5) / len(seeds) - 0.5) for rank, seed in enumerate(seeds)}
    lane = LINE if any(group.runs["diverged"].notna().any() for group in groups) else 0
    layout = Layout(score, *axis_limits(values), shift, lane, _leaders(found, score))
    return [_facet(family, layout, colour % 8) for colour, family in enumerate(found)]


def axis_limits(values: Sequence[float]) -> tuple[float, float]:
    """Low and high end of the axis: the values and a little more, from 0 unless all lie far above it."""
    low, high = min(values), max(values)
    room = 0.06 * (high - low) or 0.05 * max(abs(high), 0.1)
    return 0.0 if 0.0 <= low < high / 3 else low - room, high + room


def _leaders(found: Sequence[Family], score: str) -> list[Group]:
    """For each data set the setting with the best median, where there are several settings."""
    best = []
    for data in dict.fromkeys(family.data for family in found):
        groups = [g for f in found if f.data == data for g in f.groups if len(g.scores(score))]
        if sign(score) and len(groups) > 1:
            best.append(max(groups, key=lambda group: sign(score) * group.scores(score).median()))
    return best


def _facet(family: Family, layout: Layout, colour: int) -> Facet:
    groups, names = family.groups, list(family.groups[0].values)
    left = int(LETTER * max([5, *(len(name) for name in names)])) + 14
    body = _grid(layout)
    for line, name in enumerate(names):
        body += _text("tick", "-8", layout.label_height(line), name, "end")
    for place, group in enumerate(groups):
        body += _column(group, layout, (place + 0.5) / len(groups), 1 / len(groups))
    longest = max([0, *(len(value) for group in groups for value in group.values.values())])
    heading = max(LETTER * len(word) for word in family.name.split())
    narrowest = max(len(groups) * max(COLUMN, LETTER * longest + 8), heading - left, 2 * COLUMN)
    svg = Markup('<svg class="run{}" style="height:{}px" role="img" aria-label="{}">{}</svg>')
    drawn = svg.format(colour, layout.label_height(len(names) - 1) + 6, _spoken(family, layout.score), body)
    return Facet(family.name, drawn, left, int(narrowest), len(groups))


def _text(kind: str, across: str, height: float, text: str, anchor: str = "middle") -> Markup:
    shape = Markup('<text class="{}" x="{}" y="{:.1f}" text-anchor="{}">{}</text>')
    return shape.format(kind, across, height, anchor, text)


def _line(kind: str, start: float, end: float, height: float) -> Markup:
    shape = Markup('<line class="{0}" x1="{1:.2f}%" x2="{2:.2f}%" y1="{3:.1f}" y2="{3:.1f}"/>')
    return shape.format(kind, 100 * start, 100 * end, height)


def _grid(layout: Layout) -> Markup:
    body = Markup("")
    for tick in ticks(layout.low, layout.high, False):
        height = layout.height(tick)
        body += _line("grid", 0, 1, height) + _text("tick", "-8", height + 3.5, short(tick), "end")
    return body


def _column(group: Group, layout: Layout, middle: float, width: float) -> Markup:
    """The dots of one setting, its median and its labels; a cross for a run that diverged."""
    values, body = group.scores(layout.score), Markup("")
    for row in group.runs.index:
        seed, step = group.runs.at[row, "seed"], group.runs.at[row, "diverged"]
        across = f"{100 * (middle + width * layout.shift[seed]):.2f}%"
        if row in values.index:
            about = ", ".join(word for word in (group.label, f"seed {seed}: {format_number(values[row], 3)}") if word)
            body += _dot(across, layout.height(float(values[row])), 3.5 if len(layout.shift) < MANY else 2.5, about)
        elif step == step:
            cross = Markup("×<title>seed {} diverged at step {:,.0f}</title>").format(seed, step)
            body += _text("lost", across, TOP + PLOT + 13, cross)
    if len(values) > 1:
        body += _line("median", middle - 0.4 * width, middle + 0.4 * width, layout.height(float(values.median())))
    kind = "tick value best" if any(group is best for best in layout.best) else "tick value"
    for line, value in enumerate(group.values.values()):
        body += _text(kind, f"{100 * middle:.2f}%", layout.label_height(line), value)
    return body


def _dot(across: str, height: float, radius: float, about: str) -> Markup:
    shape = Markup('<circle class="dot" cx="{}" cy="{:.1f}" r="{}"><title>{}</title></circle>')
    return shape.format(across, height, radius, about)


def _spoken(family: Family, score: str) -> str:
    """The drawing for those who cannot see it."""
    told = []
    for group in family.groups:
        values = group.scores(score)
        if len(values):
            several = "median " if len(values) > 1 else ""
            told.append(f"{group.label} {several}{format_number(float(values.median()))}".strip())
    return f"{short_title(score)} of {family.name}: {'; '.join(told) or 'no values'}"
