"""All runs of a sweep as a table that can be sorted."""

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
    settings = list(dict.fromkeys([*varied, *frame.attrs["settings"], "seed", *shown_settings(frame)]))
    folders = [Path(run).name for run in frame["run"]]
    rows = []
    for folder, (_, row) in zip(folders, frame.iterrows(), strict=True):
        cells = [(text, "" if text == DASH else text) for text in (format_setting(row[name]) for name in settings)]
        values = [float(row[name]) for name in sweep.scores]
        cells += [(format_number(value, 3), repr(value) if math.isfinite(value) else "") for value in values]
        name = folder if len(set(folders)) == len(folders) else row["run"]
        reason = row.get("not_scored")
        shown = {"folder": name, "path": row["run"], "cells": cells, "step": row["diverged"]}
        rows.append(shown | {"reason": reason if isinstance(reason, str) else ""})
    return {"headers": [*settings, *(short_title(name) for name in sweep.scores)], "rows": rows}


PANEL = Panel("all_runs", "All runs", "sweep", context)
