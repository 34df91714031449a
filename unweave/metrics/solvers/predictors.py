"""Predict each factor from the codes: importance of the codes and accuracy on test rows.

Shape letters: N rows, D codes, K factors, V classes, M test rows.
"""

import warnings
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from unweave.errors import check_choice
from unweave.metrics.inputs import (
    Array,
    FactorTypes,
    Floats,
    Indices,
    MetricInputs,
    TestRows,
    classes,
    read_table,
    read_test,
    varying_factors,
)
from unweave.metrics.parallel import parallel_map
from unweave.metrics.solvers.boosting import Target, boost
from unweave.metrics.solvers.linear import class_scores, fit_logistic, fit_logistics, standardize

PREDICTORS = ("gbt", "forest", "lasso", "logistic", "logistic_cv")
_TREES = 10  # of a forest, as in the code of ubisoft-laforge
_ALPHA = 0.02  # of the lasso, as in qedr and InfoGAN-CR
_INVERSE_PENALTIES = (0.01, 1.0, 100.0, 10_000.0)  # candidates of the cross-validation
_FOLDS, _VALIDATED = 3, 1_000  # of the cross-validation: folds and largest number of rows


class Split(NamedTuple):
    """Train rows, test rows, and the factors that vary among the train rows."""

    train: MetricInputs
    test: MetricInputs
    factors: list[int]


class Fitted(NamedTuple):
    """Result of predicting the factors of a split."""

    importance: Floats  # [D, K], not negative; a column sums to 1, or to 0 if no code was used
    accuracy: Floats  # [K], on the test rows; R^2 of continuous factors; NaN without test rows


def read_split(
    codes: Array, factors: Array, *, test: TestRows = None, seed: int = 0, factor_types: FactorTypes = None
) -> Split:
    """Return the checked tables; without `test` a random 2:1 split of the rows."""
    table = read_table(codes, factors, factor_types=factor_types)
    varying_factors(table)  # raises if no factor varies; none may vary among the train rows
    train, held_out = read_test(table, test, seed)
    return Split(train, held_out, varying_factors(train, required=False))


class Factor(NamedTuple):
    """The known values of one factor."""

    rows: Indices  # of the train table
    values: Floats | Indices  # standardised numbers, or classes
    test_rows: Indices
    test_values: Floats | Indices
    classes: int  # 0 for numbers


def read_factor(split: Split, k: int, *, as_number: bool = False) -> Factor:
    """Return factor k as classes, or as standardised numbers if it is continuous or `as_number`."""
    train, test = split.train, split.test
    if train.factor_types[k] == "discrete" and not as_number:
        (rows, labels), (test_rows, test_labels) = classes(train, k), classes(test, k, like=train)
        return Factor(rows, labels, test_rows, test_labels, int(labels.max(initial=0)) + 1)
    rows, test_rows = (np.flatnonzero(~np.isnan(table.factors[:, k])) for table in (train, test))
    values, test_values = standardize(train.factors[rows, k][:, None], test.factors[test_rows, k][:, None])
    return Factor(rows, values[:, 0], test_rows, test_values[:, 0], 0)


def accuracy(factor: Factor, predicted_m: Floats | Indices) -> float:
    """Return the accuracy on the test rows, or R^2 (at least 0) for numbers; NaN without test rows."""
    if not len(factor.test_values):
        return np.nan
    if factor.classes:
        return float((predicted_m == factor.test_values).mean())
    spread = ((factor.test_values - factor.test_values.mean()) ** 2).sum()
    missed = ((factor.test_values - predicted_m) ** 2).sum()
    return float(max(0.0, 1 - missed / spread)) if spread > 0 else float(missed == 0)


def shares(importance_D: Floats) -> Floats:
    total = importance_D.sum()
    return importance_D / total if total > 0 else np.zeros_like(importance_D)


def fit_predictors(split: Split, predictor: str, *, seed: int = 0, device: Any = None) -> Fitted:
    """Predict each factor of the split from all codes."""
    check_choice("predictor", predictor, PREDICTORS)
    if not split.factors:
        return Fitted(np.zeros((split.train.codes.shape[1], 0)), np.zeros(0))
    if predictor == "gbt":
        return _fit_boosted(split, seed, device)
    train_ND, test_ND = standardize(split.train.codes, split.test.codes)

    def one(k: int) -> tuple[Floats, float]:
        factor = read_factor(split, k, as_number=predictor == "lasso")
        importance, predicted = _FITS[predictor](train_ND[factor.rows], factor, test_ND[factor.test_rows], seed, device)
        return shares(importance), accuracy(factor, predicted)

    found = parallel_map(one, split.factors, device)
    return Fitted(np.stack([importance for importance, _ in found], axis=1), np.array([score for _, score in found]))


def _fit_boosted(split: Split, seed: int, device: Any) -> Fitted:
    """Fit all factors at once."""
    found = [read_factor(split, k) for k in split.factors]
    targets = [_target(factor, len(split.train.codes)) for factor in found]
    boosted = boost(split.train.codes, targets, split.test.codes, seed=seed, device=device)
    predicted = [_decide(scores[factor.test_rows], factor.classes) for scores, factor in zip(boosted.scores, found)]
    return Fitted(boosted.importance, np.array([accuracy(*pair) for pair in zip(found, predicted)]))


def _target(factor: Factor, rows: int) -> Target:
    values, present = np.zeros(rows), np.zeros(rows, np.bool_)
    values[factor.rows], present[factor.rows] = factor.values, True
    return Target(values, present, factor.classes)


def _decide(scores: Floats, classes: int) -> Floats | Indices:
    if classes > 2:
        return scores.argmax(axis=1)
    return (scores[:, 0] > 0).astype(np.int64) if classes else scores[:, 0]


def _fit_forest(train: Floats, factor: Factor, test: Floats, seed: int, device: Any) -> tuple[Floats, Any]:
    from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor

    kind = RandomForestClassifier if factor.classes else RandomForestRegressor
    model = kind(n_estimators=_TREES, max_features=1.0, random_state=seed).fit(train, factor.values)
    return model.feature_importances_, _predict(model, test)


def _fit_lasso(train: Floats, factor: Factor, test: Floats, seed: int, device: Any) -> tuple[Floats, Any]:
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.linear_model import Lasso

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # for a factor that is linear in the codes
        model = Lasso(alpha=_ALPHA).fit(train, factor.values)
    return np.abs(model.coef_), _predict(model, test)


def _fit_logistic(
    train: Floats, factor: Factor, test: Floats, seed: int, device: Any, validated: bool = False
) -> tuple[Floats, Any]:
    if not factor.classes:
        from sklearn.linear_model import Ridge

        model = Ridge().fit(train, factor.values)
        return np.abs(model.coef_), _predict(model, test)
    labels = factor.values.astype(np.int64)
    inverse_penalty = _best_inverse_penalty(train, labels, factor.classes, seed, device) if validated else 1.0
    weights = fit_logistic(train, labels, factor.classes, inverse_penalty=inverse_penalty, device=device)
    return np.abs(weights[:-1]).mean(axis=1), class_scores(weights, test).argmax(axis=1)


def _best_inverse_penalty(train: Floats, labels_N: Indices, classes: int, seed: int, device: Any) -> float:
    """Return the inverse penalty with the highest cross-validated accuracy, the smallest of equals."""
    rows = np.random.default_rng(seed).permutation(len(train))[:_VALIDATED]
    codes, labels = train[rows], labels_N[rows]
    used = np.ones((_FOLDS, len(rows)))
    for fold, held_out in enumerate(np.array_split(np.arange(len(rows)), _FOLDS)):
        used[fold, held_out] = 0.0
    used = used[used.any(axis=1)]  # with a single row a fold has no train rows
    counts, inverse_penalties = np.repeat(used, len(_INVERSE_PENALTIES), axis=0), np.tile(_INVERSE_PENALTIES, len(used))
    found = fit_logistics(codes, labels, classes, counts, inverse_penalties, device=device)
    right = [
        ((class_scores(weights, codes).argmax(axis=1) == labels) & (count == 0)).sum()
        for weights, count in zip(found, counts, strict=True)
    ]
    return _INVERSE_PENALTIES[int(np.reshape(right, (-1, len(_INVERSE_PENALTIES))).sum(axis=0).argmax())]


def _predict(model: Any, test: Floats) -> Any:
    return model.predict(test) if len(test) else np.zeros(0)


_FITS: dict[str, Callable[..., tuple[Floats, Any]]] = {
    "forest": _fit_forest,
    "lasso": _fit_lasso,
    "logistic": _fit_logistic,
    "logistic_cv": partial(_fit_logistic, validated=True),
}
