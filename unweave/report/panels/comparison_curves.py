"""Logged quantities of several runs over training."""

from unweave.report.charts.curves import chart_grid
from unweave.report.panel import Panel

PANEL = Panel(
    "comparison_curves",
    "Training curves of all runs",
    "comparison",
    lambda page: chart_grid([run.curves for run in page.runs]),
    needs=("log",),
)
