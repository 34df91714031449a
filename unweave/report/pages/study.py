"""The page of a study: one HTML file with every run beside the published numbers."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from unweave.report.charts.strips import StripRow
from unweave.report.panels import render_panels
from unweave.report.render import check_file, render_page
from unweave.report.views import StudyView
from unweave.runs import write_files


def study_page(tables: Mapping[str, Any], plots: Mapping[str, Sequence[StripRow]], out: str | Path) -> Path:
    """Write a self-contained HTML page about a study; return its path."""
    panels, path = render_panels("study", StudyView(tables, plots)), check_file(out)
    page = render_page("study", title=tables["title"], tables=tables, panels=panels)
    write_files(out, {path: page.encode()})
    return path
