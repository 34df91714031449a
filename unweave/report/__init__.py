"""Images of trained models and HTML reports."""

from unweave.report.pages.run import report
from unweave.report.pages.sweep import compare_page
from unweave.report.samples import save_samples, traversal_png
from unweave.report.sweep_summary import summary

__all__ = ["compare_page", "report", "save_samples", "summary", "traversal_png"]
