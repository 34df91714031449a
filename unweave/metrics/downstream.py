"""Downstream prediction: how many labels it takes to learn the factors from the codes.

Shape letters: N rows, D codes, K factors.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch

from unweave.errors import UserError
from unweave.metrics.histogram_mi import device_of
from unweave.metrics.inputs import Array, FactorTypes, Floats, check_at_least, select_rows
from unweave.metrics.metric import Metric
from unweave.metrics.parallel import parallel_map
from unweave.metrics.solvers.predictors import Split, accuracy, fit, learnable, read_factor, read_split

MODELS = {"logistic": "logistic_cv", "gbt": "gbt"}
LABELS = (10, 100, 1_000, 10_000)


def labelled_rows(split: Split, labels: int, seed: int) -> Split:
    """So many rows to learn from, drawn by the seed, and the factors that still vary among them."""
    order = np.random.default_rng([seed, 1]).permutation(len(split.train.codes))[:labels]
    train = select_rows(split.train, order)
    return Split(train, split.test, learnable(train))


def constant_accuracy(split: Split, k: int) -> float:
    """What is right if the labelled rows show one value of a factor: to predict that value, or nothing without any."""
    if split.train.factor_types[k] == "continuous" or np.isnan(split.train.factors[:, k]).all():
        return 0.0
    factor = read_factor(split, k)
    return accuracy(factor, np.full(len(factor.test_values), factor.values[0]))


def accuracies(
    split: Split, model: str, labels: Sequence[int], seed: int, device: torch.device | str | None
) -> list[Floats]:
    """The test accuracy of each factor [K], NaN where it has no test rows, for every number of labels."""
    splits = [labelled_rows(split, int(number), seed) for number in labels]
    # Boosting learns all factors in one go; regressions are many small pieces, the long ones first.
    parts = [(i, [k]) for i, some in enumerate(splits) for k in some.factors]
    parts = parts if model == "logistic" else [(i, some.factors) for i, some in enumerate(splits)]
    parts.sort(key=lambda part: -len(splits[part[0]].train.codes))

    def one(part: tuple[int, list[int]]) -> Floats:
        some = splits[part[0]]._replace(factors=part[1])
        return fit(some, MODELS[model], seed=seed, device=device).accuracy

    learnt = parallel_map(one, parts, device) if model == "logistic" else [one(part) for part in parts]
    found = {(i, k): value for (i, factors), values in zip(parts, learnt) for k, value in zip(factors, values)}
    return [
        np.array([found[i, k] if (i, k) in found else constant_accuracy(some, k) for k in split.factors])
        for i, some in enumerate(splits)
    ]


def downstream_scores(
    codes: Array,
    factors: Array,
    *,
    labels: Sequence[int] = LABELS,
    model: str = "logistic",
    test: tuple[Array, Array] | None = None,
    seed: int = 0,
    factor_types: FactorTypes = None,
    device: str | None = None,
) -> dict[str, float]:
    """How well each factor is predicted from the codes with few labels, mean over the factors, in 0..1.

    "labels_100" is the accuracy (R^2 of continuous factors) on the test rows of a model that saw 100 rows, or all
    there are. `model` is "logistic" (linear) or "gbt" (boosted trees), both as in disentanglement_lib.
    """
    if model not in MODELS:
        raise UserError(f"model: '{model}' is unknown; accepted are {' and '.join(MODELS)}")
    if not len(labels):
        raise UserError("labels: is empty; accepted are numbers of rows to learn from, such as (10, 100)")
    for number in labels:
        check_at_least("labels", number, 1)
    split = read_split(codes, factors, test=test, seed=seed, factor_types=factor_types)
    device_ = device_of(codes, device)
    found = {}
    for number, told in zip(labels, accuracies(split, model, labels, seed, device_)):
        told = told[~np.isnan(told)]
        found[f"labels_{number}"] = float(told.mean()) if len(told) else 0.0
    return found


DOWNSTREAM = Metric(
    "downstream",
    downstream_scores,
    "Downstream prediction",
    "How well the factors are predicted from the latents after training on few labels.",
    definition="disentanglement_lib: logistic regression, cross-validated",
    parts={
        f"labels_{number}": f"Accuracy after training on {number:,} labels, or on all if there are fewer."
        for number in LABELS
    },
    test_options={"labels": (4,)},
)
