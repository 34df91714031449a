"""Every score of every run of a sweep as strip plots."""

from typing import Any

from unweave.report.charts.strips import StripRow, draw
from unweave.report.formatting import format_number
from unweave.report.panel import Panel
from unweave.report.sweep_summary import best_groups
from unweave.report.views import SweepView

SPREAD = 12  # pixels over which the seeds of a row are spread


def context(sweep: SweepView) -> dict[str, Any] | None:
    plots = {score: strip_rows(sweep, score) for score in sweep.scores}
    drawn = [draw(score, rows) for score, rows in plots.items() if any(row.points for row in rows)]
    return {"plots": drawn} if drawn else None


def strip_rows(sweep: SweepView, score: str) -> list[StripRow]:
    """Return a row per setting, below a heading for each method if there are several."""
    rows, best = [], best_groups(sweep.families, score)
    seeds = sorted(set(sweep.frame["seed"]))
    offsets = {seed: SPREAD * ((rank + 0.5) / len(seeds) - 0.5) for rank, seed in enumerate(seeds)}
    for number, family in enumerate(sweep.families):
        if sweep.several and family.groups[0].label:
            rows.append(StripRow(family.name, True, number % 8, [], float("nan")))
        for group in family.groups:
            values, seeds = group.scores(score), group.runs["seed"]
            label = f"{group.label}, " if group.label else ""
            points = [(value, f"{label}seed {seeds[i]}: {format_number(value, 3)}") for i, value in values.items()]
            steps = group.runs["diverged"].dropna()
            diverged = [f"seed {seeds[i]} diverged at step {step:,.0f}" for i, step in steps.items()]
            shifts, is_best = [offsets[seeds[i]] for i in values.index], any(group is other for other in best)
            name, colour = group.label or family.name, number % 8
            rows.append(StripRow(name, False, colour, points, values.median(), (), shifts, diverged, is_best))
    return rows


PANEL = Panel("strip_plots", "Scores of every run", "sweep", context, needs=("scores",))
