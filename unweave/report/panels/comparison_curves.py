"""Logged quantities of several runs over training."""

from __future__ import annotations

from typing import Any

from unweave.report.charts.curves import chart_grid
from unweave.report.panel import Panel
from unweave.report.views import ComparisonView


def context(page: ComparisonView) -> dict[str, Any] | None:
    grid = chart_grid([run.curves for run in page.runs])
    return grid and {**grid, "runs": page.runs}


PANEL = Panel("comparison_curves", "Training curves of all runs", "comparison", context, needs=("log",))
