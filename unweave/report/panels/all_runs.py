"""All runs of a sweep as a table that can be sorted."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

from unweave.report.formatting import DASH, format_number, short_title
from unweave.report.panel import Panel
from unweave.report.sweep_summary import format_setting, shown_settings
from unweave.report.views import SweepView


def context(sweep: SweepView) -> dict[str, Any]:
    """Return one row per run with the settings in which the runs differ; a cell has a text and a sort key."""
    frame = sweep.frame
    varied = [name for name in ("method", "data") if frame[name].nunique() > 1]
    settings = [*varied, *(name for name in shown_settings(frame) if name != "steps"), "seed"]
    settings += ["steps"] if frame["steps"].nunique() > 1 else []
    folders = [Path(run).name for run in frame["run"]]
    folders = folders if len(set(folders)) == len(folders) else list(frame["run"])
    rows = []
    for folder, (_, row) in zip(folders, frame.iterrows(), strict=True):
        cells = [(text, "" if text == DASH else text) for text in (format_setting(row[name]) for name in settings)]
        cells += [(format_number(row[name], 3), _sort_key(row[name])) for name in sweep.scores]
        step = "" if math.isnan(row["diverged"]) else f"{row['diverged']:,.0f}"
        rows.append({"folder": folder, "path": row["run"], "cells": cells, "step": step})
    return {"heads": [*settings, *(short_title(name) for name in sweep.scores)], "rows": rows}


def _sort_key(value: float) -> str:
    return repr(float(value)) if math.isfinite(value) else ""


PANEL = Panel("all_runs", "All runs", "sweep", context)
