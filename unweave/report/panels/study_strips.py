"""Every score of every run of a study beside the published numbers."""

from unweave.report.charts.strips import draw
from unweave.report.panel import Panel

PANEL = Panel(
    "study_strips",
    "Runs and published numbers",
    "study",
    lambda study: {"plots": [draw(score, rows) for score, rows in study.plots.items()]},
    needs=("scores",),
)
