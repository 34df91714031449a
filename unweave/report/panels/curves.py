"""Logged quantities over training."""

from unweave.report.charts.curves import chart_grid
from unweave.report.panel import Panel

PANEL = Panel("curves", "Training curves", "run", lambda run: chart_grid([run.curves]), needs=("log",))
