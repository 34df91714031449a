"""Pictures of trained models and the one-file HTML report."""

from unweave.report.command import repeat_command
from unweave.report.images import save_samples, traversal_picture
from unweave.report.pages.run import report
from unweave.report.pages.sweep import compare_page, summary

__all__ = ["compare_page", "repeat_command", "report", "save_samples", "summary", "traversal_picture"]
