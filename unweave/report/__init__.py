"""Pictures of trained models and the one-file HTML report."""

from unweave.report.compare import compare_page, summary
from unweave.report.page import report
from unweave.report.pictures import save_samples, traversal_picture
from unweave.report.text import repeat_command

__all__ = ["compare_page", "repeat_command", "report", "save_samples", "summary", "traversal_picture"]
