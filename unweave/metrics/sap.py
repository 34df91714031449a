"""SAP: difference in accuracy between the two codes that best predict a factor, each on its own.

The linear SVM of one code has two parameters, a slope and an offset. Its loss depends only on the number, sum and sum
of squares of the rows on the wrong side of the margin, which is an interval of the sorted code. A Newton step for all
classes therefore needs only a few look-ups in cumulative sums.

Shape letters: N rows, D codes, K factors, V classes, M test rows.
"""

from typing import Any, NamedTuple

import numpy as np

from unweave.errors import check_choice, renamed_arguments
from unweave.metrics.inputs import Array, FactorTypes, Floats, Indices, MetricInputs, TestRows, classes
from unweave.metrics.metric import Metric
from unweave.metrics.solvers.predictors import Split, read_split

_COST = 0.01  # C of liblinear in disentanglement_lib
_LEAST_VARIANCE = 1e-12  # codes with a smaller variance score 0, as in disentanglement_lib


class Column(NamedTuple):
    """One code and one factor: the rows sorted by the code, and by class and code."""

    values: Floats  # [N], the code, increasing
    below: Floats  # [N + 1, 3], number, sum and sum of squares of the rows before each position
    keys: Indices  # [N], class * (N + 1) + position, increasing
    below_keys: Floats  # [N + 1, 3], number, sum and sum of squares of the rows before each key


class Machines(NamedTuple):
    """One-vs-rest SVMs, one for each positive class [V]."""

    positive: Indices  # the class
    cost_in: Floats  # cost of a row of the class on the wrong side of the margin
    cost_out: Floats  # cost of any other row


def sort_column(code_N: Floats, labels_N: Indices) -> Column:
    order = np.argsort(code_N, kind="stable")
    values, labels = code_N[order], labels_N[order]
    by_class = np.argsort(labels, kind="stable")
    return Column(
        values, _cumulated(values), labels[by_class] * (len(values) + 1) + by_class, _cumulated(values[by_class])
    )


def _cumulated(values_N: Floats) -> Floats:
    moments = np.stack([np.ones_like(values_N), values_N, values_N**2], axis=1)
    return np.concatenate([np.zeros((1, 3)), np.cumsum(moments, axis=0)])


def machines(labels_N: Indices) -> Machines:
    """Return the costs of liblinear for class_weight="balanced": inverse class frequencies, and 1 for the rest."""
    count_V = np.bincount(labels_N)
    weight_V = _COST * len(labels_N) / (len(count_V) * count_V)
    if len(count_V) == 2:
        return Machines(np.array([1]), weight_V[1:], weight_V[:1])
    return Machines(np.arange(len(count_V)), weight_V, np.full(len(count_V), _COST))


def wrong_side(column: Column, positive_V: Indices, line_V2: Floats, *, own: bool) -> Floats:
    """Return number, sum and sum of squares [V, 3] of the rows of the class, or of the rest, beyond their margin.

    Rows of the class should have slope * x + offset >= 1, the others <= -1.
    """
    slope, offset = line_V2.T
    slope = np.where(slope == 0, 1e-300, slope)  # for slope 0 all rows are on one side
    with np.errstate(over="ignore"):
        limit = ((1.0 if own else -1.0) - offset) / slope
    below = (slope > 0) == own  # True if the rows before the limit are on the wrong side
    place = np.where(below, np.searchsorted(column.values, limit), np.searchsorted(column.values, limit, side="right"))
    low, high = np.where(below, 0, place), np.where(below, place, len(column.values))
    steps = positive_V * (len(column.values) + 1)
    inside = np.searchsorted(column.keys, steps + high), np.searchsorted(column.keys, steps + low)
    of_class = column.below_keys[inside[0]] - column.below_keys[inside[1]]
    return of_class if own else column.below[high] - column.below[low] - of_class


def _objective(line_V2: Floats, inside_V3: Floats, outside_V3: Floats, costs: Machines) -> Floats:
    slope, offset = line_V2.T
    loss = np.zeros(len(slope))
    for (count, first, second), cost, sign in ((inside_V3.T, costs.cost_in, 1), (outside_V3.T, costs.cost_out, -1)):
        gap = (1 - sign * offset) ** 2 * count - 2 * sign * slope * (1 - sign * offset) * first + slope**2 * second
        loss += cost * gap
    return loss + (slope**2 + offset**2) / 2


def fit_lines(column: Column, costs: Machines, *, steps: int = 50) -> Floats:
    """Return slope and offset [V, 2] of every SVM: squared hinge loss, both regularised, as in liblinear."""
    line = np.zeros((len(costs.positive), 2))
    best = np.full(len(line), np.inf)
    trial = line
    for _ in range(steps):
        inside, outside = (wrong_side(column, costs.positive, trial, own=own) for own in (True, False))
        value = _objective(trial, inside, outside, costs)
        better = value < best
        # If the last step overshot, the next trial is halfway back.
        line, best = np.where(better[:, None], trial, line), np.where(better, value, best)
        target = np.where(better[:, None], _newton(inside, outside, costs), (trial + line) / 2)
        if np.allclose(target, trial, rtol=1e-9, atol=1e-12):
            break
        trial = target
    return line


def _newton(inside_V3: Floats, outside_V3: Floats, costs: Machines) -> Floats:
    """Return the optimum for unchanged rows on the wrong side."""
    cost_in, cost_out = 2 * costs.cost_in[:, None], 2 * costs.cost_out[:, None]
    count, first, second = (cost_in * inside_V3 + cost_out * outside_V3).T
    pull, pull_first, _ = (cost_in * inside_V3 - cost_out * outside_V3).T
    # At least 1, because the variance of the rows is negative only by rounding.
    determinant = 1 + count + second + np.maximum(count * second - first**2, 0)
    slope = ((1 + count) * pull_first - first * pull) / determinant
    offset = ((1 + second) * pull - first * pull_first) / determinant
    return np.stack([slope, offset], axis=1)


def line_accuracy(line_V2: Floats, code_M: Floats, labels_M: Indices) -> float:
    """Return the share of rows whose class is predicted."""
    scores_MV = code_M[:, None] * line_V2[:, 0] + line_V2[:, 1]
    guess_M = scores_MV.argmax(axis=1) if len(line_V2) > 1 else (scores_MV[:, 0] > 0)
    return float((guess_M == labels_M).mean())


def svm_accuracies(split: Split, k: int) -> Floats:
    """Return the test accuracy of each single code for factor k [D]."""
    rows, labels = classes(split.train, k)
    test_rows, test_labels = classes(split.test, k, like=split.train)
    if not len(test_rows):
        return np.zeros(split.train.codes.shape[1])
    costs = machines(labels)
    lines = (fit_lines(sort_column(code_N, labels), costs) for code_N in split.train.codes[rows].T)
    tested = zip(lines, split.test.codes[test_rows].T)
    return np.array([line_accuracy(line, code_M, test_labels) for line, code_M in tested])


def squared_correlations(table: MetricInputs, k: int) -> Floats:
    """Return the squared correlation of each code with factor k [D]."""
    rows = np.flatnonzero(~np.isnan(table.factors[:, k]))
    factor_n = table.factors[rows, k] - table.factors[rows, k].mean()
    codes_nD = table.codes[rows] - table.codes[rows].mean(axis=0)
    variance_D = codes_nD.var(axis=0)
    shared_D = (codes_nD * factor_n[:, None]).mean(axis=0) ** 2
    alive_D = variance_D > _LEAST_VARIANCE
    return np.divide(shared_D, variance_D * factor_n.var(), out=np.zeros(len(shared_D)), where=alive_D)


def sap_matrix(codes: Array, factors: Array, *, flavour: str = "svm", **options: Any) -> Floats:
    """Return how well each single code predicts each factor [D, K], as in `sap_score`; NaN for a constant factor."""
    return _matrix(read_split(codes, factors, **options), flavour)


def _matrix(split: Split, flavour: str) -> Floats:
    check_choice("flavour", flavour, ("svm", "r2"))
    found_DK = np.full((split.train.codes.shape[1], len(split.train.factor_types)), np.nan)
    for k in split.factors:
        linear = flavour == "r2" or split.train.factor_types[k] == "continuous"
        found_DK[:, k] = squared_correlations(split.train, k) if linear else svm_accuracies(split, k)
    return found_DK


@renamed_arguments(kinds="factor_types")
def sap_score(
    codes: Array,
    factors: Array,
    *,
    flavour: str = "svm",
    test: TestRows = None,
    seed: int = 0,
    factor_types: FactorTypes = None,
) -> float:
    """Separated attribute predictability (Kumar et al. 2018, section 3, https://arxiv.org/abs/1711.00848), in 0..1.

    Each single code predicts each factor: the accuracy is that of a linear SVM on the test rows, or the squared
    correlation for continuous factors (for all factors with flavour="r2"). The score is the difference between the best
    code and the second best, averaged over the factors.
    """
    split = read_split(codes, factors, test=test, seed=seed, factor_types=factor_types)
    if split.train.codes.shape[1] == 1:  # a single code is compared with a constant one
        split = Split(_with_constant(split.train), _with_constant(split.test), split.factors)
    best_DK = np.sort(_matrix(split, flavour)[:, split.factors], axis=0)
    return float((best_DK[-1] - best_DK[-2]).mean()) if split.factors else 0.0


def _with_constant(table: MetricInputs) -> MetricInputs:
    return table._replace(codes=np.pad(table.codes, ((0, 0), (0, 1))))


SAP = Metric(
    "sap",
    sap_score,
    "Separated attribute predictability (SAP)",
    "How much better the best single latent predicts each factor than the second best.",
    definition="disentanglement_lib: linear SVM, C = 0.01",
    invariant=("permutation", "sign"),  # the penalty of the SVM depends on the scale
)
