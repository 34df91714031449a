"""Scores of several runs as a table, the best of each column marked."""

import math
from collections.abc import Sequence
from typing import Any

from unweave.metrics import METRICS
from unweave.report.panel import Panel
from unweave.report.views import ComparisonView


def context(page: ComparisonView) -> dict[str, Any]:
    results = [run.result for run in page.runs]
    columns = [(METRICS[name].title, [r.scores.get(name, math.nan) for r in results]) for name in results[0].scores]
    marked = [(title, mark_best(values, page.same_data)) for title, values in columns]
    return {"columns": marked, "errors": _reconstruction_errors(page)}


def mark_best(values: Sequence[float], comparable: bool, sign: int = 1, digits: int = 2) -> list[tuple[float, bool]]:
    """Return each value and whether it is the best one, rounded to the digits shown; none if all are equal."""
    known = [sign * round(v, digits) for v in values if math.isfinite(v)]
    differ = comparable and len(set(known)) > 1
    return [(v, differ and math.isfinite(v) and sign * round(v, digits) == max(known)) for v in values]


def _reconstruction_errors(page: ComparisonView) -> list[tuple[float, bool]] | None:
    """Return the last logged reconstruction error of each run, if they have the same data and likelihood."""
    likelihoods = {run.trained.config.arguments.get("likelihood") for run in page.runs}
    if not page.same_data or len(likelihoods) > 1 or not all("recon" in run.curves for run in page.runs):
        return None
    return mark_best([float(run.curves["recon"].values[-1]) for run in page.runs], True, sign=-1, digits=1)


PANEL = Panel("comparison_scores", "Scores", "comparison", context)
