"""Scores of one run: accuracy of classes, metrics, number of active latents."""

import math

import numpy as np

from unweave.metrics import METRICS
from unweave.report.panel import Panel
from unweave.report.views import RunView


def context(run: RunView) -> dict[str, object]:
    measured = bool(np.isfinite(run.result.latent_information).any())
    return {"metrics": METRICS, "share": share, "active": run.active, "measured": measured}


def share(name: str, value: float) -> float:
    """Return where a score lies between the worst (0) and the best (1) value of its metric."""
    metric = METRICS[name]
    span = (value - metric.worst) / (metric.best - metric.worst)
    return min(1.0, max(0.0, span)) if math.isfinite(span) else 0.0


PANEL = Panel("scores", "Scores", "run", context)
