"""The published numbers of a study beside ours."""

from unweave.report.panel import Panel

PANEL = Panel(
    "published",
    "Comparison with published numbers",
    "study",
    lambda study: {"tables": study.tables},
    needs=("published numbers",),
)
