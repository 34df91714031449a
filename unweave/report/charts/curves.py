"""Learning curves as small SVG drawings."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from markupsafe import Markup

from unweave.report.charts.svg import ticks
from unweave.report.formatting import pretty, short

HEIGHT = 150
WIDE, NARROW = 390, 256  # of two or three charts per row: drawn at the size they are shown, so that text is too
LEFT, RIGHT, TOP, BOTTOM = 40, 8, 10, 22
MAX_POINTS = 200
LOG_RATIO = 6.0  # a curve whose maximum is more than this many times its end has a logarithmic axis

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
    "shared": ("latents classified as shared", ""),
    "capacity": ("capacity", "nats"),
    "discriminator": ("discriminator loss", "nats"),
}


class Curve(NamedTuple):
    """One run's values of one quantity."""

    run: int  # position of the run on the page, which decides the colour
    steps: np.ndarray
    values: np.ndarray


def read_curves(logs: Sequence[Mapping[str, Any]], run: int) -> dict[str, Curve]:
    """Return every logged quantity over the steps; the steps of later stages continue those of earlier ones."""
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
    return {name: _thin(Curve(run, np.array(s), np.array(v))) for name, (s, v) in columns.items()}


def _thin(curve: Curve) -> Curve:
    """Return at most MAX_POINTS points, each the mean of neighbouring ones."""
    if len(curve.steps) <= MAX_POINTS:
        return curve
    parts = np.array_split(np.arange(len(curve.steps)), MAX_POINTS)
    return Curve(curve.run, *(np.array([column[p].mean() for p in parts]) for column in (curve.steps, curve.values)))


def chart_grid(runs: Sequence[Mapping[str, Curve]]) -> dict[str, Any] | None:
    """Return one chart per quantity, with the curves of all runs, and the number of charts per row; None if none."""
    names = dict.fromkeys(name for curves in runs for name in curves)
    shown = {n: [run[n] for run in runs if n in run and np.isfinite(run[n].values).any()] for n in names}
    shown = {name: curves for name, curves in shown.items() if curves}
    if not shown:
        return None
    columns = 2 if len(shown) in (1, 2, 4) else 3  # no row with a single chart
    width = WIDE if columns == 2 else NARROW
    return {"columns": columns, "charts": [_chart(name, curves, width) for name, curves in shown.items()]}


def _chart(name: str, curves: Sequence[Curve], width: int) -> dict[str, Any]:
    logarithmic = any(_falls_far(curve.values[np.isfinite(curve.values)]) for curve in curves) and all(
        np.nanmin(curve.values) > 0 for curve in curves
    )
    title, unit = TITLES.get(name, (pretty(name), ""))
    unit = ", ".join(word for word in (unit, "log scale" if logarithmic else "") if word)
    return {"title": title, "unit": unit, "svg": _draw(title, curves, logarithmic, width)}


def _falls_far(values: np.ndarray) -> bool:
    return bool(values.min() > 0 and values.max() > LOG_RATIO * values[-1] and values[-1] < 3.0 * values.min())


def _draw(title: str, curves: Sequence[Curve], logarithmic: bool, width: int) -> Markup:
    values = np.concatenate([curve.values[np.isfinite(curve.values)] for curve in curves])
    low, high = float(values.min()), float(values.max())
    if high - low < 1e-9 * max(1.0, abs(high)):
        low, high, logarithmic = low - 0.5, high + 0.5, False
    last = max(float(curve.steps.max()) for curve in curves)

    def position(steps: np.ndarray, heights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        bottom, top, shown = (np.log(v) for v in (low, high, heights)) if logarithmic else (low, high, heights)
        x = LEFT + (width - LEFT - RIGHT) * steps / last
        return x, TOP + (HEIGHT - TOP - BOTTOM) * (1.0 - (shown - bottom) / (top - bottom))

    body = Markup("")
    for tick in ticks(low, high, logarithmic):
        y = float(position(np.zeros(1), np.array([tick]))[1][0])
        body += Markup(
            f'<line class="grid" x1="{LEFT}" x2="{width - RIGHT}" y1="{y:.1f}" y2="{y:.1f}"/>'
            f'<text class="tick" x="{LEFT - 6}" y="{y + 3.5:.1f}" text-anchor="end">{short(tick)}</text>'
        )
    body += Markup(
        f'<text class="tick" x="{LEFT}" y="{HEIGHT - 5}">0</text>'
        f'<text class="tick" x="{width - RIGHT}" y="{HEIGHT - 5}" text-anchor="end">{last:,.0f} steps</text>'
    )
    for curve in curves:
        body += _path(curve, *position(curve.steps, curve.values))
    return Markup('<svg viewBox="0 0 {} {}" role="img" aria-label="{}">{}</svg>').format(width, HEIGHT, title, body)


def _path(curve: Curve, x: np.ndarray, y: np.ndarray) -> Markup:
    """Return the curve, interrupted at values that are not finite; a single point is a dot."""
    pieces, connected, colour = [], False, curve.run % 8
    for at, height in zip(x, y, strict=True):
        if np.isfinite(height):
            pieces.append(f"{'L' if connected else 'M'}{at:.1f} {height:.1f}")
        connected = bool(np.isfinite(height))
    point = ""
    if len(pieces) == 1:
        only = int(np.flatnonzero(np.isfinite(y))[0])
        point = f'<circle class="dot run{colour}" cx="{x[only]:.1f}" cy="{y[only]:.1f}" r="2.5"/>'
    return Markup(f'<path class="curve run{colour}" d="{"".join(pieces)}"/>{point}')
