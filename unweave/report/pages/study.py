"""The page of a study: one HTML file with every run beside the published numbers."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from unweave.report.charts.strips import StripRow
from unweave.report.panels import render_panels
from unweave.report.render import check_file, write_page
from unweave.report.views import StudyView


def study_page(
    tables: Mapping[str, Any],
    plots: Mapping[str, Sequence[StripRow]],
    out: str | Path,
    beside: Mapping[Path, bytes] | None = None,
) -> Path:
    """Write a self-contained HTML page about a study, and files beside it, all or none; return its path."""
    path, panels = check_file(out), render_panels("study", StudyView(tables, plots))
    return write_page("study", path, beside, title=tables["title"], tables=tables, panels=panels)
