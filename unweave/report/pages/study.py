"""The page of a study: one HTML file with every run beside the published numbers."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from unweave.report.charts.strips import PublishedRange, StripRow
from unweave.report.panels import render_panels
from unweave.report.render import check_file, render_page, write_files
from unweave.report.views import StudyTables, StudyView


def study_page(tables: StudyTables, plots: Mapping[str, Sequence[StripRow]], out: str | Path) -> Path:
    """Write a self-contained HTML page about a study; return its path."""
    panels, path = render_panels("study", StudyView(tables, plots)), check_file(out)
    write_files(out, {path: render_page("study", title=tables.title, tables=tables, panels=panels).encode()})
    return path


__all__ = ["PublishedRange", "StripRow", "StudyTables", "study_page"]
