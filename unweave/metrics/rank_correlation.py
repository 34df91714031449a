"""Agreement of metrics: rank correlations between scores over many models.

Shape letters: M models, S scores.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from unweave.metrics.inputs import Floats, Indices, array_error

MIN_MODELS = 3  # fewest models for a rank correlation


class Agreement(NamedTuple):
    """Rank correlations between scores, and the number of models of each."""

    names: tuple[str, ...]
    correlation: Floats  # [S, S], -1..1
    models: Indices  # [S, S]


def agreement(scores_table: Any) -> Agreement:
    """Return Spearman's rank correlation of each pair of scores over many models.

    `scores_table` maps the name of each score to its values over the models (such as a data frame), or is a list with
    one mapping {name: value} per model. Models without a score (absent, None or NaN) are left out of its correlations.
    The correlation is 0 for constant scores and for fewer than 3 models.

    >>> agreement({"a": [1, 2, 3], "b": [10, 20, 30], "c": [3, 2, 1]}).correlation.tolist()
    [[1.0, 1.0, -1.0], [1.0, 1.0, -1.0], [-1.0, -1.0, 1.0]]
    """
    names, values_SM = _read(scores_table)
    size = len(names)
    correlation, models = np.eye(size), np.zeros((size, size), np.int64)
    for i in range(size):
        for j in range(i, size):
            both = ~np.isnan(values_SM[i]) & ~np.isnan(values_SM[j])
            models[i, j] = models[j, i] = both.sum()
            if i != j:
                correlation[i, j] = correlation[j, i] = rank_correlation(values_SM[i, both], values_SM[j, both])
    return Agreement(names, correlation, models)


def rank_correlation(left_M: Floats, right_M: Floats) -> float:
    """Return Spearman's coefficient; 0 if it is not defined."""
    from scipy.stats import rankdata

    if len(left_M) < MIN_MODELS or np.ptp(left_M) == 0 or np.ptp(right_M) == 0:
        return 0.0
    return float(np.clip(np.corrcoef(rankdata(left_M), rankdata(right_M))[0, 1], -1.0, 1.0).round(12))


def _read(scores_table: Any) -> tuple[tuple[str, ...], Floats]:
    accepted = "a mapping of score names to values, or a list of {score: value}, with one value or None per model"
    try:
        if isinstance(scores_table, Sequence):
            names = dict.fromkeys(name for row in scores_table for name in row)
            columns = {name: [row.get(name) for row in scores_table] for name in names}
        else:
            columns = {str(name): list(scores_table[name]) for name in scores_table}
        values_SM = np.array([[np.nan if v is None else float(v) for v in column] for column in columns.values()])
        if values_SM.ndim != 2 or not values_SM.size:
            raise ValueError("no scores")
    except (AttributeError, TypeError, KeyError, IndexError, ValueError) as error:
        raise array_error("scores_table", f"{type(scores_table).__name__} ({error})", accepted) from error
    return tuple(columns), np.where(np.isfinite(values_SM), values_SM, np.nan)
