"""Heat maps as PNG: mutual information of latents and factors, and the importance matrix of DCI."""

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import Colormap, LinearSegmentedColormap
from matplotlib.figure import Figure

from unweave.errors import UserError
from unweave.evaluation.evaluate import Evaluation
from unweave.metrics import describe
from unweave.report.formatting import format_number, pretty
from unweave.report.images import ACCENT, FAINT, INK, PAPER, SOFT, figure_png
from unweave.report.information import adjusted_information
from unweave.runs import write_files

SEQUENTIAL = LinearSegmentedColormap.from_list(
    "information", ["#f5f2ec", "#cfe0df", "#93bcc0", "#4f8d97", ACCENT, "#123f48"]
)
CELL = 0.46  # side of a cell with a number, in inches
SMALL = 0.16  # side of a cell without a number, in inches
DPI = 200
MAX_NUMBERED = 26  # rows or columns up to which cells show numbers
Label = Callable[[float], str]  # the text of a cell


class Cells(NamedTuple):
    """A table of numbers to be drawn as coloured cells."""

    title: str
    note: str
    values: np.ndarray  # [rows, columns]
    columns: Sequence[str]
    low: float = 0.0  # the value with the first colour; 1 has the last one


def heatmap_png(result: Evaluation) -> bytes:
    """Return a PNG with a row per latent and a column per factor; darker cells are more information."""
    if not result.information.size:
        raise UserError("result has no factors; a heat map needs at least one", argument="result")
    names = [pretty(name) for name in result.factor_names]
    tables = [Cells("Mutual information", "share of each factor’s entropy, %", adjusted_information(result), names)]
    if result.importance is not None:
        total_K = result.importance.sum(axis=0, keepdims=True)
        shares = np.divide(result.importance, total_K, out=np.zeros_like(result.importance), where=total_K > 0)
        tables.append(Cells("Importance", "share in predicting each factor (DCI), %", shares, names))
    rows = [f"z{z}" for z in range(len(result.information))]
    inactive = [not active for active in result.active]
    return draw(tables, rows, SEQUENTIAL, percent_text, faint=inactive)


def write_scores(result: Evaluation, folder: Path, source: Path) -> Path:
    """Write heatmap.png and scores.json to the folder; `evaluate` has written the latter if it is the run's own."""
    contents = {}
    if folder != source:
        contents[folder / "scores.json"] = (json.dumps(result.as_json(), indent=2) + "\n").encode()
    if result.information.size:
        contents[folder / "heatmap.png"] = heatmap_png(result)
    write_files(folder, contents)
    return folder


def score_rows(result: Evaluation) -> list[list[str]]:
    """Return one row of text per score: title, value, interval, description and definition."""
    rows = []
    for name, value in result.scores.items():
        metric = describe(name)
        ends = result.intervals.get(name)
        between = f"{format_number(ends[0], 3)} – {format_number(ends[1], 3)}" if ends else ""
        rows.append([metric.title, format_number(value, 3), between, metric.description, metric.definition])
    return rows


def percent_text(value: float) -> str:
    return f"{100 * value:.0f}" if value >= 0.005 else "·"


def draw(
    tables: Sequence[Cells], rows: Sequence[str], colours: Colormap, label: Label, *, faint: Sequence[bool] = ()
) -> bytes:
    """Return the tables side by side, with common rows, as PNG."""
    most = max(len(rows), *(table.values.shape[1] for table in tables))
    cell, size = (CELL, 9.0) if most <= MAX_NUMBERED else (SMALL, 6.5)
    widths = [max(table.values.shape[1] * cell, 0.064 * len(table.note) + 0.1) for table in tables]
    figure = Figure(figsize=(sum(widths) + 1, len(rows) * cell + 1.5), facecolor=PAPER, dpi=DPI, layout="constrained")
    figure.get_layout_engine().set(w_pad=0.15, h_pad=0.15)  # type: ignore[union-attr, call-arg]
    all_axes = figure.subplots(1, len(tables), width_ratios=widths, squeeze=False)[0]
    for number, (table, axes) in enumerate(zip(tables, all_axes, strict=True)):
        note = table.note if cell == CELL else f"{table.note}; darker is more"
        axes.set_title(table.title, loc="left", size=11.5, weight="bold", color=INK, pad=10)
        axes.set_xlabel(note, loc="left", size=8, color=SOFT, labelpad=8)
        shades = colours((table.values - table.low) / (1.0 - table.low))
        axes.pcolormesh(shades, edgecolors=PAPER, linewidth=2 if cell == CELL else 0)
        axes.set_aspect("equal", anchor="NW")
        axes.invert_yaxis()
        for (row, column), value in np.ndenumerate(table.values) if cell == CELL else ():
            dark, text = shades[row, column, :3] @ (0.299, 0.587, 0.114) < 0.55, label(float(value))
            colour = "white" if dark else FAINT if text == "·" else INK
            axes.text(column + 0.5, row + 0.52, text, ha="center", va="center", size=size, color=colour)
        _label_axes(axes, table.columns, rows if number == 0 else [""] * len(rows), faint, size)
    return figure_png(figure)


def _label_axes(axes: Axes, columns: Sequence[str], rows: Sequence[str], faint: Sequence[bool], size: float) -> None:
    axes.spines[:].set_visible(False)
    axes.tick_params(length=0, pad=3, labeltop=True, labelbottom=False)
    slant: dict[str, Any] = {"rotation": 40, "ha": "left", "rotation_mode": "anchor"}
    axes.set_xticks(np.arange(len(columns)) + 0.5, list(columns), size=size, color=INK, **slant)
    axes.set_yticks(np.arange(len(rows)) + 0.5, list(rows), size=size, color=INK)
    for tick, is_faint in zip(axes.get_yticklabels(), faint, strict=False):
        tick.set_color(FAINT if is_faint else INK)
