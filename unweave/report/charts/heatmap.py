"""Which latent knows which factor, as one picture: mutual information, and DCI's importance when there is one."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import Colormap, LinearSegmentedColormap
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from unweave.errors import UserError
from unweave.evaluation.evaluate import Evaluation
from unweave.metrics import describe
from unweave.report.images import adjusted_information
from unweave.report.words import format_number, pretty
from unweave.runs import write_atomic

PAPER, INK, SOFT, FAINT, LINE, ACCENT = "#fdfcfa", "#1f1e1b", "#6d6a63", "#a9a59c", "#e7e3db", "#1f5f6b"
LIGHT_TO_ACCENT = LinearSegmentedColormap.from_list(
    "knows", ["#f5f2ec", "#cfe0df", "#93bcc0", "#4f8d97", ACCENT, "#123f48"]
)
CELL = 0.46  # inches, the side of a cell with a number in it
SMALL = 0.16  # inches, of cells too many to hold numbers
DPI = 200
NUMBERS = 26  # rows or columns up to which cells hold numbers


class Panel(NamedTuple):
    """A table of numbers to be drawn as coloured cells."""

    title: str
    note: str
    values: np.ndarray  # [rows, columns]
    columns: Sequence[str]


def heatmap_picture(result: Evaluation) -> bytes:
    """A PNG: latents downwards, factors across, a cell the darker the more the latent knows."""
    if not result.information.size:
        raise UserError("result has no factors; a heat map needs at least one")
    names = [pretty(name) for name in result.factor_names]
    panels = [Panel("Mutual information", "share of each factor’s entropy, %", adjusted_information(result), names)]
    if result.importance is not None:
        panels.append(
            Panel("Importance", "share in predicting each factor (DCI), %", _of_one(result.importance), names)
        )
    rows = [f"z{z}" for z in range(len(result.information))]
    faint = [not alive for alive in result.active]
    return draw(panels, rows, LIGHT_TO_ACCENT, 0.0, 1.0, percent_text, faint=faint)


def write_scores(result: Evaluation, folder: Path, scored: Path) -> Path:
    """scores.json and heatmap.png in the folder; a run's own scores.json is written by `evaluate`."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if folder != scored:
            write_atomic(folder / "scores.json", (json.dumps(result.as_json(), indent=2) + "\n").encode())
        if result.information.size:
            write_atomic(folder / "heatmap.png", heatmap_picture(result))
    except OSError as error:
        raise UserError(
            f"out '{folder}' cannot be written: {error.strerror or error}; choose another folder"
        ) from error
    return folder


def score_rows(result: Evaluation) -> list[list[str]]:
    """The scores for reading: name, value, interval, meaning with the flavour under it."""
    rows = []
    for name, value in result.scores.items():
        metric = describe(name)
        ends = result.intervals.get(name)
        between = f"{format_number(ends[0], 3)} – {format_number(ends[1], 3)}" if ends else ""
        rows.append(
            [metric.title, format_number(value, 3), between, f"{metric.description}\n[dim]{metric.definition}[/dim]"]
        )
    return rows


def _of_one(importance: np.ndarray) -> np.ndarray:
    total = importance.sum(axis=0, keepdims=True)
    return np.divide(importance, total, out=np.zeros_like(importance), where=total > 0)


def percent_text(value: float) -> str:
    return f"{100 * value:.0f}" if value >= 0.005 else "·"


def draw(
    panels: Sequence[Panel],
    rows: Sequence[str],
    colours: Colormap,
    low: float,
    high: float,
    told: Callable[[float], str],
    *,
    faint: Sequence[bool] = (),
) -> bytes:
    """The panels side by side over the same rows, as PNG."""
    most = max(len(rows), *(panel.values.shape[1] for panel in panels))
    cell = CELL if most <= NUMBERS else SMALL
    letter = 0.078 if cell == CELL else 0.056  # inches, of the labels
    left = letter * max(len(name) for name in rows) + 0.3
    longest = letter * max(len(name) for panel in panels for name in panel.columns)
    head = 0.72 + 0.64 * longest  # labels stand at 40 degrees
    widths = [_width(panel, cell, letter) for panel in panels]
    width, height = left + sum(widths) + 0.35 * (len(panels) - 1) + 0.2, head + len(rows) * cell + 0.25
    figure = Figure(figsize=(width, height), facecolor=PAPER, dpi=DPI)
    for order, (panel, across) in enumerate(zip(panels, widths, strict=True)):
        place = (left / width, 0.25 / height, panel.values.shape[1] * cell / width, len(rows) * cell / height)
        axes = figure.add_axes(place)
        _cells(axes, panel, colours, low, high, told if cell == CELL else None)
        _label(axes, panel, rows if order == 0 else [""] * len(rows), faint, cell)
        figure.text(left / width, 1 - 0.14 / height, panel.title, size=11.5, weight="bold", color=INK, va="top")
        note = panel.note if cell == CELL else f"{panel.note}; the darker the more"
        figure.text(left / width, 1 - 0.36 / height, note, size=8, color=SOFT, va="top")
        left += across + 0.35
    buffer = io.BytesIO()
    FigureCanvasAgg(figure).print_png(buffer, metadata={"Software": None})  # equal tables give equal files
    return buffer.getvalue()


def _width(panel: Panel, cell: float, letter: float) -> float:
    """Inches a panel takes: its cells, what its slanted labels need beyond them, and its title."""
    across = panel.values.shape[1]
    ends = [(k + 0.5) * cell + 0.77 * letter * len(name) for k, name in enumerate(panel.columns)]
    return max(across * cell, *ends, 0.064 * len(panel.note) + 0.1)


def _cells(
    axes: Axes, panel: Panel, colours: Colormap, low: float, high: float, told: Callable[[float], str] | None
) -> None:
    down, across = panel.values.shape
    axes.set(xlim=(0, across), ylim=(down, 0))
    axes.set_facecolor(PAPER)
    gap = 0.05 if told else 0.0
    for (row, column), value in np.ndenumerate(panel.values):
        shade = colours((value - low) / (high - low))
        axes.add_patch(
            Rectangle((column + gap / 2, row + gap / 2), 1 - gap, 1 - gap, facecolor=shade, edgecolor="none")
        )
        if told:
            dark = 0.299 * shade[0] + 0.587 * shade[1] + 0.114 * shade[2] < 0.55
            text = told(float(value))
            colour = "white" if dark else FAINT if text == "·" else INK
            axes.text(column + 0.5, row + 0.52, text, ha="center", va="center", size=9, color=colour)


def _label(axes: Axes, panel: Panel, rows: Sequence[str], faint: Sequence[bool], cell: float) -> None:
    size = 9 if cell == CELL else 6.5
    axes.tick_params(length=0, pad=3)
    for side in axes.spines.values():
        side.set_visible(False)
    axes.xaxis.tick_top()
    slant: dict[str, Any] = {"rotation": 40, "ha": "left", "rotation_mode": "anchor"}
    axes.set_xticks(np.arange(len(panel.columns)) + 0.5, list(panel.columns), size=size, color=INK, **slant)
    axes.set_yticks(np.arange(len(rows)) + 0.5, list(rows), size=size, color=INK)
    for tick, is_faint in zip(axes.get_yticklabels(), faint, strict=False):
        if is_faint:
            tick.set_color(FAINT)
