"""Scores of one run: accuracy of classes, metrics, number of active latents."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from unweave.metrics import METRICS
from unweave.report.panel import Panel
from unweave.report.views import RunView


def context(run: RunView) -> dict[str, Any]:
    measured = bool(np.isfinite(run.result.latent_information).any())
    metrics = [_card(name, value) for name, value in run.result.scores.items()]
    return {"accuracies": run.accuracies, "metrics": metrics, "active": run.active, "measured": measured}


def _card(name: str, value: float) -> dict[str, Any]:
    metric = METRICS[name]
    span = (value - metric.worst) / (metric.best - metric.worst)
    share = min(1.0, max(0.0, span)) if math.isfinite(span) else 0.0
    return {"title": metric.title, "value": value, "share": share, "sentence": metric.description}


PANEL = Panel("scores", "Scores", "run", context)
