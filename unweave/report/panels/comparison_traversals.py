"""Traversals of the most informative latents of several runs."""

from unweave.report.panel import Panel
from unweave.report.traversals import MAX_LATENTS

PANEL = Panel(
    "comparison_traversals", "Latent traversals side by side", "comparison", lambda page: {"most": MAX_LATENTS}
)
