"""Median and range of every score by row of a study."""

from unweave.report.panel import Panel

PANEL = Panel("study_settings", "All settings", "study")
