"""Rank correlations between metrics over many models, as a heat map."""

import numpy as np
from matplotlib.colors import LinearSegmentedColormap

from unweave.metrics.rank_correlation import Agreement
from unweave.report.charts.heatmap import Cells, draw
from unweave.report.formatting import hundredths, short_title

DIVERGING = LinearSegmentedColormap.from_list(
    "agreement", ["#8c3d16", "#c4622d", "#ecc3a8", "#f5f2ec", "#b3d0d1", "#4f8d97", "#1f5f6b"]
)


def agreement_png(table: Agreement, *, title: str = "Do the metrics agree?") -> bytes:
    """Return a PNG of the rank correlations × 100: 100 is the same order of models, -100 the reverse order."""
    names = [short_title(name) for name in table.names]
    least, most = int(table.models.min()), int(table.models.max())
    models = f"{most} models" if least == most else f"{least} to {most} models"
    cells = Cells(title, f"rank correlation over {models}, × 100", table.correlation, names, low=-1.0)
    return draw([cells], names, DIVERGING, hundredths)


def order_by_agreement(table: Agreement) -> Agreement:
    """Return the table with metrics that agree next to each other, so that groups are visible."""
    order = np.array(_nearest_chain(table.correlation))
    names = tuple(table.names[i] for i in order)
    return Agreement(names, table.correlation[np.ix_(order, order)], table.models[np.ix_(order, order)])


def _nearest_chain(correlation: np.ndarray) -> list[int]:
    """Start with the metric that agrees most with all others; continue with the nearest to the last one."""
    left = list(range(len(correlation)))
    chain = [left.pop(int(correlation.sum(axis=1).argmax()))]
    while left:
        nearest = max(left, key=lambda i: correlation[chain[-1], i])
        left.remove(nearest)
        chain.append(nearest)
    return chain
