"""Every score of every run of a study beside the published numbers."""

from typing import Any

from unweave.report.charts.strips import draw
from unweave.report.panel import Panel
from unweave.report.views import StudyView


def context(study: StudyView) -> dict[str, Any]:
    return {"plots": [draw(score, rows) for score, rows in study.plots.items()]}


PANEL = Panel("study_strips", "Runs and published numbers", "study", context, needs=("scores",))
