"""Rank correlations between the scores of a sweep."""

import math
from typing import Any

import numpy as np
import pandas as pd

from unweave.metrics import agreement
from unweave.report.charts.agreement import order_by_agreement
from unweave.report.formatting import DASH, hundredths, short_title
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
    table = order_by_agreement(agreement({name: (sign(name) or 1) * scores[name] for name in scores}))
    titles, count = [short_title(name) for name in table.names], len(table.names)
    least, most = int(table.models.min()), int(table.models.max())
    texts = np.where(table.models >= MIN_RUNS, np.vectorize(hundredths)(table.correlation), DASH)
    pairs = [(i, j) for i in range(count) for j in range(i + 1, count) if math.isfinite(table.correlation[i, j])]
    pairs = sorted((pair for pair in pairs if texts[pair] != DASH), key=lambda pair: table.correlation[pair])
    extremes = [f"{titles[i]} and {titles[j]} agree {{}} ({texts[i, j]})" for i, j in pairs]
    return {
        "titles": titles,
        "runs": f"{most}" if least == most else f"{least} to {most}",
        "chance": hundredths(min(1.0, 1.96 / math.sqrt(max(1, least - 1)))),
        "extremes": f"{extremes[-1].format('most')}, {extremes[0].format('least')}." if len(pairs) > 1 else "",
        "rows": [list(zip(*row, strict=True)) for row in zip(table.correlation.tolist(), texts.tolist(), strict=True)],
    }


PANEL = Panel("agreement", "Agreement of the scores", "sweep", context, needs=("scores",))
