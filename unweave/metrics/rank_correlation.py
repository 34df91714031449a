"""Do metrics agree? The rank correlation between every two of them over many models.

Shape letters: M models, S scores.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from unweave.errors import UserError
from unweave.metrics.inputs import Floats, Indices

MIN_MODELS = 3  # models under which a rank correlation says nothing


class Agreement(NamedTuple):
    """Rank correlations between scores, and over how many models each was taken."""

    names: tuple[str, ...]
    correlation: Floats  # [S, S], -1..1
    models: Indices  # [S, S]


def agreement(scores_table: Any) -> Agreement:
    """Spearman's rank correlation between every two scores over many models.

    `scores_table` is a mapping from each score's name to its values over the models (a data frame is one), or
    a list with one mapping {name: value} per model. A model without some score (absent, None or NaN) is left
    out where that score is compared. Scores that never differ, or share fewer than 3 models, correlate 0.

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
    """Spearman's coefficient; 0 where it is not defined."""
    from scipy.stats import rankdata

    if len(left_M) < MIN_MODELS or np.ptp(left_M) == 0 or np.ptp(right_M) == 0:
        return 0.0
    return float(np.clip(np.corrcoef(rankdata(left_M), rankdata(right_M))[0, 1], -1.0, 1.0).round(12))


def _read(scores_table: Any) -> tuple[tuple[str, ...], Floats]:
    if isinstance(scores_table, Sequence) and not isinstance(scores_table, str):
        if not all(isinstance(row, Mapping) for row in scores_table):
            raise UserError(
                "scores_table: holds more than mappings; accepted is a list of {score: value}, one per model"
            )
        names = tuple(dict.fromkeys(name for row in scores_table for name in row))
        columns = [[row.get(name) for row in scores_table] for name in names]
    else:
        try:
            names = tuple(str(name) for name in scores_table)
            columns = [list(scores_table[name]) for name in scores_table]
        except (TypeError, KeyError, IndexError) as error:
            raise UserError(
                f"scores_table: is a {type(scores_table).__name__}; accepted is a mapping of score names to values"
            ) from error
    if not names or len({len(column) for column in columns}) != 1 or not columns[0]:
        raise UserError("scores_table: has no scores, or columns of unequal length; accepted is one value per model")
    try:
        values_SM = np.array([[np.nan if v is None else float(v) for v in column] for column in columns])
    except (TypeError, ValueError) as error:
        raise UserError(f"scores_table: holds what is no number ({error}); accepted are numbers and None") from error
    return names, np.where(np.isfinite(values_SM), values_SM, np.nan)
