"""Every score of every run as strip plots."""

from __future__ import annotations

from typing import Any

from unweave.report.charts.strip_plot import facets
from unweave.report.panel import Panel
from unweave.report.sweep_summary import describe_score
from unweave.report.views import SweepView

HALF_WIDTH = 400  # pixels up to which two plots stand side by side


def context(sweep: SweepView) -> dict[str, Any] | None:
    plots = [plot for name in sweep.scores if (plot := _plot(sweep, name))["facets"]]
    if not plots:
        return None
    return {"plots": plots, "several": sweep.several, "repeated": sweep.repeated, "diverged": sweep.diverged}


def _plot(sweep: SweepView, score: str) -> dict[str, Any]:
    title, sentence = describe_score(score)
    drawn = facets(sweep.families, score)
    wide = sum(facet.left + facet.narrowest + 20 for facet in drawn) > HALF_WIDTH
    return {"title": title, "sentence": sentence, "facets": drawn, "wide": wide}


PANEL = Panel("strip_plots", "Scores of every run", "sweep", context, needs=("scores",))
