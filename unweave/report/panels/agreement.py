"""Rank correlations between the scores of a sweep."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from unweave.metrics import agreement
from unweave.report.charts.agreement import order_by_agreement
from unweave.report.formatting import DASH, hundredths, join_words, short_title
from unweave.report.panel import Panel
from unweave.report.sweep_summary import sign
from unweave.report.views import SweepView

MIN_RUNS, MIN_SCORES = 5, 2


def context(sweep: SweepView) -> dict[str, Any] | None:
    """Return a table for each data set with enough runs and scores."""
    tables, frame = [], sweep.frame
    for data, part in frame.loc[frame["diverged"].isna()].groupby("data", sort=False):
        varied = [name for name in sweep.scores if part[name].nunique() > 1 and part[name].notna().sum() >= MIN_RUNS]
        if len(varied) >= MIN_SCORES:
            tables.append({"data": data if frame["data"].nunique() > 1 else "", **_table(part[varied])})
    return {"tables": tables} if tables else None


def _table(scores: pd.DataFrame) -> dict[str, Any]:
    upward = {name: (sign(name) or 1) * scores[name] for name in scores}
    table = order_by_agreement(agreement(upward))
    titles = [short_title(name) for name in table.names]
    upper = np.triu(np.where(table.models >= MIN_RUNS, table.correlation, np.nan), 1)
    pairs = [(float(upper[i, j]), i, j) for i in range(len(titles)) for j in range(i + 1, len(titles))]
    pairs = sorted((pair for pair in pairs if math.isfinite(pair[0])), reverse=True)
    least, most = int(table.models.min()), int(table.models.max())
    return {
        "titles": titles,
        "runs": f"{most}" if least == most else f"{least} to {most}",
        "chance": hundredths(min(1.0, 1.96 / math.sqrt(max(1, least - 1)))),
        "extremes": _extremes([(hundredths(value), titles[i], titles[j]) for value, i, j in pairs]),
        "rows": [
            [
                (float(value), hundredths(float(value)) if models >= MIN_RUNS else DASH)
                for value, models in zip(*row, strict=True)
            ]
            for row in zip(table.correlation, table.models, strict=True)
        ],
    }


def _extremes(pairs: Sequence[tuple[str, str, str]]) -> str:
    if len(pairs) < 2:
        return ""
    (high, *alike), (low, *apart) = pairs[0], pairs[-1]
    return f"{join_words(alike)} agree most ({high}), {join_words(apart)} least ({low})."


PANEL = Panel("agreement", "Agreement of the scores", "sweep", context, needs=("scores",))
