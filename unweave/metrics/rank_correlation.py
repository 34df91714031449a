"""Agreement of metrics: rank correlations between scores over many models.

Shape letters: M models, S scores.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from unweave.errors import invalid
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
    if isinstance(scores_table, Sequence) and not isinstance(scores_table, str):
        if not all(isinstance(row, Mapping) for row in scores_table):
            raise array_error(
                "scores_table", "a list of other objects", "a list of mappings {score: value}, one per model"
            )
        names = tuple(dict.fromkeys(name for row in scores_table for name in row))
        columns = [[row.get(name) for row in scores_table] for name in names]
    else:
        try:
            names = tuple(str(name) for name in scores_table)
            columns = [list(scores_table[name]) for name in scores_table]
        except (TypeError, KeyError, IndexError) as error:
            raise array_error(
                "scores_table", type(scores_table).__name__, "a mapping of score names to values"
            ) from error
    if not names or len({len(column) for column in columns}) != 1 or not columns[0]:
        lengths = [len(column) for column in columns]
        raise array_error("scores_table", f"columns of lengths {lengths}", "one value per model of each score")
    try:
        values_SM = np.array([[np.nan if v is None else float(v) for v in column] for column in columns])
    except (TypeError, ValueError) as error:
        raise invalid("scores_table", str(error), "numbers or None") from error
    return names, np.where(np.isfinite(values_SM), values_SM, np.nan)
