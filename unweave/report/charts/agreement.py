"""Whether metrics agree, as a picture: the rank correlation between every two of them over many models."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.colors import LinearSegmentedColormap

from unweave.metrics import METRICS
from unweave.metrics.rank_correlation import Agreement
from unweave.report.charts.heatmap import Panel, draw

AGAINST_TO_WITH = LinearSegmentedColormap.from_list(
    "agrees", ["#8c3d16", "#c4622d", "#ecc3a8", "#f5f2ec", "#b3d0d1", "#4f8d97", "#1f5f6b"]
)


def agreement_picture(found: Agreement, *, title: str = "Do the metrics agree?") -> bytes:
    """A PNG of the rank correlations in hundredths: 100 is the same order of models, -100 the reverse."""
    names = [short_title(name) for name in found.names]
    least, most = int(found.models.min()), int(found.models.max())
    models = f"{most} models" if least == most else f"{least} to {most} models"
    panel = Panel(title, f"rank correlation over {models}, × 100", found.correlation, names)
    return draw([panel], names, AGAINST_TO_WITH, -1.0, 1.0, hundredths)


def hundredths(value: float) -> str:
    return f"{100 * value:.0f}".replace("-0", "0") if abs(value) < 0.005 else f"{100 * value:.0f}".replace("-", "−")


def short_title(score: str) -> str:
    """The name in brackets if the metric has one: "Mutual information gap (MIG)" is MIG."""
    name, _, part = score.partition(".")
    if name not in METRICS:
        return score.replace("_", " ")
    title = METRICS[name].title
    short = title[title.find("(") + 1 : -1] if title.endswith(")") else title
    return f"{short}: {part.replace('_', ' ')}" if part else short


def order_by_agreement(found: Agreement) -> Agreement:
    """The same table with metrics that agree next to each other, so that groups can be seen."""
    order = np.array(_nearest_chain(found.correlation))
    names = tuple(found.names[i] for i in order)
    return Agreement(names, found.correlation[np.ix_(order, order)], found.models[np.ix_(order, order)])


def _nearest_chain(correlation: np.ndarray) -> Sequence[int]:
    """Begin with the metric that agrees most with all others; go on with the one nearest to the last."""
    left = list(range(len(correlation)))
    chain = [left.pop(int(correlation.sum(axis=1).argmax()))]
    while left:
        nearest = max(left, key=lambda i: correlation[chain[-1], i])
        left.remove(nearest)
        chain.append(nearest)
    return chain
