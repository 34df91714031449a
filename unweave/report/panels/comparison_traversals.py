"""Traversals of the most informative latents of several runs."""

from __future__ import annotations

from typing import Any

from unweave.report.panel import Panel
from unweave.report.traversals import MAX_LATENTS
from unweave.report.views import ComparisonView


def context(page: ComparisonView) -> dict[str, Any]:
    active = [[row for row in run.latents if row["active"]][:MAX_LATENTS] for run in page.runs]
    return {"runs": list(zip(page.runs, active, strict=True)), "most": MAX_LATENTS}


PANEL = Panel("comparison_traversals", "Latent traversals side by side", "comparison", context)
