"""The published numbers of a study beside ours."""

from unweave.report.panel import Panel

PANEL = Panel("published", "Comparison with published numbers", "study", needs=("published numbers",))
