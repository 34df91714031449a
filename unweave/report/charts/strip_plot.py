"""Strip plots of one score over the runs of a sweep: a dot per run, a line at the median of each setting."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from markupsafe import Markup

from unweave.report.charts.svg import axis_limits, dot, line, text, ticks
from unweave.report.formatting import format_number, short, short_title
from unweave.report.sweep_summary import Family, Group, sign

TOP, PLOT, LINE = 8, 168, 16  # heights in pixels: above the plot, of the plot, of a line of labels
LETTER = 7.2  # width in pixels of a letter of a label
COLUMN = 30  # width in pixels of the narrowest column
SPREAD = 0.62  # share of a column's width over which its dots are spread
MANY = 15  # number of seeds from which dots are smaller


class Facet(NamedTuple):
    """The drawing of one method."""

    heading: str
    svg: Markup
    left: int  # width in pixels of the names of the settings
    narrowest: int  # width in pixels below which labels would touch
    columns: int


class Layout(NamedTuple):
    """Properties that all drawings of one score share."""

    score: str
    low: float
    high: float
    shift: Mapping[int, float]  # offset of each seed from the middle of its column, in columns
    lane: int  # height in pixels of the marks of runs that diverged
    best: list[Group]

    def y(self, value: float) -> float:
        return TOP + PLOT * (1.0 - (value - self.low) / (self.high - self.low))

    def label_y(self, row: int) -> int:
        return TOP + PLOT + self.lane + 3 + LINE * (row + 1)


def facets(families: Sequence[Family], score: str) -> list[Facet]:
    """Return one drawing per method, all with the same axis; none if there are no values."""
    groups = [group for family in families for group in family.groups]
    values = [float(value) for group in groups for value in group.scores(score)]
    if not values:
        return []
    seeds = sorted({seed for group in groups for seed in group.runs["seed"]})
    shift = {seed: SPREAD * ((rank + 0.5) / len(seeds) - 0.5) for rank, seed in enumerate(seeds)}
    lane = LINE if any(group.runs["diverged"].notna().any() for group in groups) else 0
    layout = Layout(score, *axis_limits(values), shift, lane, _best_groups(families, score))
    return [_facet(family, layout, number % 8) for number, family in enumerate(families)]


def _best_groups(families: Sequence[Family], score: str) -> list[Group]:
    """Return for each data set the setting with the best median, if there are several settings."""
    best = []
    for data in dict.fromkeys(family.data for family in families):
        groups = [g for f in families if f.data == data for g in f.groups if len(g.scores(score))]
        if sign(score) and len(groups) > 1:
            best.append(max(groups, key=lambda group: sign(score) * group.scores(score).median()))
    return best


def _facet(family: Family, layout: Layout, colour: int) -> Facet:
    groups, names = family.groups, list(family.groups[0].values)
    left = int(LETTER * max([5, *(len(name) for name in names)])) + 14
    body = Markup("")
    for tick in ticks(layout.low, layout.high):
        y = layout.y(tick)
        body += line("grid", (0, 100), (y, y)) + text("tick", "-8", y + 3.5, short(tick), "end")
    for row, name in enumerate(names):
        body += text("tick", "-8", layout.label_y(row), name, "end")
    for number, group in enumerate(groups):
        body += _column(group, layout, 100 * (number + 0.5) / len(groups), 100 / len(groups))
    longest = max([0, *(len(value) for group in groups for value in group.values.values())])
    heading = max(LETTER * len(word) for word in family.name.split())
    narrowest = max(len(groups) * max(COLUMN, LETTER * longest + 8), heading - left, 2 * COLUMN)
    svg = Markup('<svg class="run{}" style="height:{}px" role="img" aria-label="{}">{}</svg>')
    drawn = svg.format(colour, layout.label_y(len(names) - 1) + 6, _description(family, layout.score), body)
    return Facet(family.name, drawn, left, int(narrowest), len(groups))


def _column(group: Group, layout: Layout, middle: float, width: float) -> Markup:
    """Return the dots of one setting, its median and its labels, and a cross for each run that diverged."""
    values, body = group.scores(layout.score), Markup("")
    for row in group.runs.index:
        seed, step = group.runs.at[row, "seed"], group.runs.at[row, "diverged"]
        x = middle + width * layout.shift[seed]
        if row in values.index:
            score = f"seed {seed}: {format_number(values[row], 3)}"
            title = ", ".join(word for word in (group.label, score) if word)
            radius = 3.5 if len(layout.shift) < MANY else 2.5
            body += dot("dot", x, layout.y(float(values[row])), radius, title)
        elif step == step:
            cross = Markup("×<title>seed {} diverged at step {:,.0f}</title>").format(seed, step)
            body += text("lost", f"{x:.2f}%", TOP + PLOT + 13, cross)
    if len(values) > 1:
        y = layout.y(float(values.median()))
        body += line("median", (middle - 0.4 * width, middle + 0.4 * width), (y, y))
    kind = "tick value best" if any(group is best for best in layout.best) else "tick value"
    for number, value in enumerate(group.values.values()):
        body += text(kind, f"{middle:.2f}%", layout.label_y(number), value)
    return body


def _description(family: Family, score: str) -> str:
    """Return the values as text, for screen readers."""
    medians = []
    for group in family.groups:
        values = group.scores(score)
        if len(values):
            several = "median " if len(values) > 1 else ""
            medians.append(f"{group.label} {several}{format_number(float(values.median()))}".strip())
    return f"{short_title(score)} of {family.name}: {'; '.join(medians) or 'no values'}"
