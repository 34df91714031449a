"""Images of trained models and HTML reports."""

from unweave.config import RunConfig
from unweave.report.pages.run import report
from unweave.report.pages.sweep import compare_page, summary
from unweave.report.samples import save_samples, traversal_picture


def repeat_command(config: RunConfig) -> str:
    """Return the command that trains the run again."""
    return " ".join(config.command())


__all__ = ["compare_page", "repeat_command", "report", "save_samples", "summary", "traversal_picture"]
