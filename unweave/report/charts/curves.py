"""Learning curves as small SVG drawings without colours of their own: the page's style sheet gives them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from markupsafe import Markup

from unweave.report.words import pretty, short

HEIGHT = 150
WIDE, NARROW = 390, 256  # two in a row or three: drawn at the size they are shown, so that letters are too
LEFT, RIGHT, TOP, BOTTOM = 40, 8, 10, 22
MOST_POINTS = 200  # more cannot be told apart at this size
LOG_FROM = 6.0  # a line that ends this many times below its top is read better on a logarithmic axis

TITLES = {
    "loss": ("loss", "nats"),
    "recon": ("reconstruction", "nats"),
    "kl": ("KL to the prior", "nats"),
    "content_kl": ("KL of the content", "nats"),
    "style_kl": ("KL of the style", "nats"),
    "accuracy": ("class accuracy, labelled", "share"),
    "label_accuracy": ("class accuracy, labelled", "share"),
    "unlabelled_accuracy": ("class accuracy, unlabelled", "share"),
    "tc": ("total correlation", "nats"),
    "shared": ("latents taken as shared", ""),
    "capacity": ("capacity", "nats"),
    "discriminator": ("discriminator loss", "nats"),
}


class Curve(NamedTuple):
    """One run's values of one quantity."""

    run: int  # decides the colour
    steps: np.ndarray
    values: np.ndarray


class Chart(NamedTuple):
    title: str
    unit: str
    svg: Markup


def read_curves(logs: Sequence[Mapping[str, Any]], run: int) -> dict[str, Curve]:
    """Every logged quantity over the steps; later stages go on where the ones before them ended."""
    offset, previous, stage = 0, 0, None
    columns: dict[str, tuple[list[int], list[float]]] = {}
    for record in logs:
        if record["stage"] != stage:
            offset, stage = offset + previous, record["stage"]
        previous = record["step"]
        for name, value in record.items():
            if name not in ("stage", "step") and isinstance(value, int | float):
                steps, values = columns.setdefault(name, ([], []))
                steps.append(offset + previous)
                values.append(float(value))
    return {name: _thinned(Curve(run, np.array(s), np.array(v))) for name, (s, v) in columns.items()}


def _thinned(line: Curve) -> Curve:
    """At most MOST_POINTS points, each the mean of its neighbours."""
    if len(line.steps) <= MOST_POINTS:
        return line
    parts = np.array_split(np.arange(len(line.steps)), MOST_POINTS)
    return Curve(line.run, *(np.array([column[p].mean() for p in parts]) for column in (line.steps, line.values)))


def columns(count: int) -> int:
    """How many drawings stand in a row on a wide screen, so that no row is left with one alone."""
    return 2 if count in (1, 2, 4) else 3


def charts(runs: Sequence[Mapping[str, Curve]]) -> list[Chart]:
    """One drawing per quantity, all runs that have it in it."""
    names = dict.fromkeys(name for lines in runs for name in lines)
    shown = {n: [run[n] for run in runs if n in run and np.isfinite(run[n].values).any()] for n in names}
    shown = {name: lines for name, lines in shown.items() if lines}
    width, found = WIDE if columns(len(shown)) == 2 else NARROW, []
    for name, lines in shown.items():
        logarithmic = any(_falls_far(line.values[np.isfinite(line.values)]) for line in lines) and all(
            np.nanmin(line.values) > 0 for line in lines
        )
        title, unit = TITLES.get(name, (pretty(name), ""))
        unit = ", ".join(word for word in (unit, "log scale" if logarithmic else "") if word)
        found.append(Chart(title, unit, _draw(title, lines, logarithmic, width)))
    return found


def _falls_far(values: np.ndarray) -> bool:
    return bool(values.min() > 0 and values.max() > LOG_FROM * values[-1] and values[-1] < 3.0 * values.min())


def ticks(low: float, high: float, logarithmic: bool) -> list[float]:
    """Two to five round values inside the range."""
    if logarithmic:
        powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
        for mantissas in ((1,), (1, 3), (1, 2, 5), (1, 2, 4, 7)):
            inside = [m * 10.0**p for p in powers for m in mantissas if low <= m * 10.0**p <= high]
            if 3 <= len(inside) <= 6:
                return inside
    step = 10.0 ** math.floor(math.log10((high - low) / 2))
    for factor in (5, 2, 1):
        first = math.ceil(low / (factor * step))
        inside = [i * factor * step for i in range(first, math.floor(high / (factor * step)) + 1)]
        if len(inside) >= 3:
            return inside
    return inside


def _draw(title: str, lines: Sequence[Curve], logarithmic: bool, width: int) -> Markup:
    values = np.concatenate([line.values[np.isfinite(line.values)] for line in lines])
    low, high = float(values.min()), float(values.max())
    if high - low < 1e-9 * max(1.0, abs(high)):
        low, high, logarithmic = low - 0.5, high + 0.5, False
    last = max(float(line.steps.max()) for line in lines)

    def place(steps: np.ndarray, heights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        bottom, top, shown = (np.log(v) for v in (low, high, heights)) if logarithmic else (low, high, heights)
        x = LEFT + (width - LEFT - RIGHT) * steps / last
        return x, TOP + (HEIGHT - TOP - BOTTOM) * (1.0 - (shown - bottom) / (top - bottom))

    body = Markup("")
    for tick in ticks(low, high, logarithmic):
        y = float(place(np.zeros(1), np.array([tick]))[1][0])
        body += Markup(
            f'<line class="grid" x1="{LEFT}" x2="{width - RIGHT}" y1="{y:.1f}" y2="{y:.1f}"/>'
            f'<text class="tick" x="{LEFT - 6}" y="{y + 3.5:.1f}" text-anchor="end">{short(tick)}</text>'
        )
    body += Markup(
        f'<text class="tick" x="{LEFT}" y="{HEIGHT - 5}">0</text>'
        f'<text class="tick" x="{width - RIGHT}" y="{HEIGHT - 5}" text-anchor="end">{last:,.0f} steps</text>'
    )
    for line in lines:
        body += _path(line, *place(line.steps, line.values))
    return Markup('<svg viewBox="0 0 {} {}" role="img" aria-label="{}">{}</svg>').format(width, HEIGHT, title, body)


def _path(line: Curve, x: np.ndarray, y: np.ndarray) -> Markup:
    """The line, broken where a value is no number; a single point is a dot."""
    pieces, drawing = [], False
    for at, height in zip(x, y, strict=True):
        if np.isfinite(height):
            pieces.append(f"{'L' if drawing else 'M'}{at:.1f} {height:.1f}")
        drawing = bool(np.isfinite(height))
    dot = ""
    if len(pieces) == 1:
        only = int(np.flatnonzero(np.isfinite(y))[0])
        dot = f'<circle class="dot run{line.run % 8}" cx="{x[only]:.1f}" cy="{y[only]:.1f}" r="2.5"/>'
    return Markup(f'<path class="curve run{line.run % 8}" d="{"".join(pieces)}"/>{dot}')
