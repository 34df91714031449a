"""Logged quantities of several runs over training."""

from typing import Any

from unweave.report.charts.curves import chart_grid
from unweave.report.panel import Panel
from unweave.report.views import ComparisonView


def context(page: ComparisonView) -> dict[str, Any] | None:
    return chart_grid([run.curves for run in page.runs])


PANEL = Panel("comparison_curves", "Training curves of all runs", "comparison", context, needs=("log",))
