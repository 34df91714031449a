"""Every score of every run of a study beside the published numbers."""

from __future__ import annotations

from typing import Any

from unweave.report.charts.published_strips import draw
from unweave.report.panel import Panel
from unweave.report.sweep_summary import describe_score
from unweave.report.views import StudyView


def context(study: StudyView) -> dict[str, Any]:
    described = [(describe_score(plot.score), draw(plot)) for plot in study.plots]
    return {"plots": [{"title": title, "sentence": sentence, **plot} for (title, sentence), plot in described]}


PANEL = Panel("study_strips", "Runs and published numbers", "study", context, needs=("scores",))
