"""The list of panels, in the order in which they appear on their pages."""

from importlib import import_module
from typing import Any

from markupsafe import Markup

from unweave.report.panel import Panel

MODULES = [
    "scores",
    "classes",
    "traversals",
    "parts",
    "latent_map",
    "information",
    "reconstructions",
    "curves",
    "reproduce",
    "comparison_scores",
    "differences",
    "comparison_traversals",
    "comparison_curves",
    "settings",
    "strip_plots",
    "agreement",
    "best_runs",
    "all_runs",
    "published",
    "study_strips",
    "study_settings",
]
PANELS: list[Panel] = [import_module(f"{__name__}.{name}").PANEL for name in MODULES]


def render_panels(page: str, view: Any, level: int = 2) -> Markup:
    """Return the sections of all panels of a page."""
    return Markup("\n").join(panel.render(view, level) for panel in PANELS if panel.page == page)
