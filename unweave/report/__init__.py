"""Pictures of trained models and the one-file HTML report."""

from unweave.report.command import repeat_command
from unweave.report.compare import compare_page, summary
from unweave.report.page import report
from unweave.report.pictures import save_samples, traversal_picture

__all__ = ["compare_page", "repeat_command", "report", "save_samples", "summary", "traversal_picture"]
