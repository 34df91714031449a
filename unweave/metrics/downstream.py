"""Downstream prediction: accuracy of predicting the factors from the codes with few labels.

Shape letters: N rows, D codes, K factors.
"""

from collections.abc import Sequence

import numpy as np

from unweave.errors import check_choice, invalid, renamed_arguments
from unweave.metrics.histogram_mi import device_of
from unweave.metrics.inputs import Array, FactorTypes, Floats, TestRows, check_at_least, learnable, select_rows
from unweave.metrics.metric import Metric
from unweave.metrics.parallel import Device, parallel_map
from unweave.metrics.solvers.predictors import Split, accuracy, fit, read_factor, read_split

MODELS = {"logistic": "logistic_cv", "gbt": "gbt"}
LABELS = (10, 100, 1_000, 10_000)


def labelled_rows(split: Split, labels: int, seed: int) -> Split:
    """Return a split with `labels` random train rows, and the factors that vary among them."""
    order = np.random.default_rng([seed, 1]).permutation(len(split.train.codes))[:labels]
    train = select_rows(split.train, order)
    return Split(train, split.test, learnable(train))


def constant_accuracy(split: Split, k: int) -> float:
    """Return the accuracy of predicting the only value of a factor in the train rows; 0 if it has none."""
    if split.train.factor_types[k] == "continuous" or np.isnan(split.train.factors[:, k]).all():
        return 0.0
    factor = read_factor(split, k)
    return accuracy(factor, np.full(len(factor.test_values), factor.values[0]))


def accuracies(split: Split, model: str, labels: Sequence[int], seed: int, device: Device) -> list[Floats]:
    """Return the test accuracy of each factor [K] for each number of labels; NaN without test rows."""
    splits = [labelled_rows(split, int(number), seed) for number in labels]
    # Boosting fits all factors at once; regressions are independent jobs, of which the longest start first.
    parts = [(i, [k]) for i, some in enumerate(splits) for k in some.factors]
    parts = parts if model == "logistic" else [(i, some.factors) for i, some in enumerate(splits)]
    parts.sort(key=lambda part: -len(splits[part[0]].train.codes))

    def one(part: tuple[int, list[int]]) -> Floats:
        some = splits[part[0]]._replace(factors=part[1])
        return fit(some, MODELS[model], seed=seed, device=device).accuracy

    accuracies_K = parallel_map(one, parts, device) if model == "logistic" else [one(part) for part in parts]
    found = {(i, k): value for (i, factors), values in zip(parts, accuracies_K) for k, value in zip(factors, values)}
    return [
        np.array([found[i, k] if (i, k) in found else constant_accuracy(some, k) for k in split.factors])
        for i, some in enumerate(splits)
    ]


@renamed_arguments(kinds="factor_types")
def downstream_scores(
    codes: Array,
    factors: Array,
    *,
    labels: Sequence[int] = LABELS,
    model: str = "logistic",
    test: TestRows = None,
    seed: int = 0,
    factor_types: FactorTypes = None,
    device: str | None = None,
) -> dict[str, float]:
    """Accuracy of predicting each factor from the codes with few labels, mean over the factors, in 0..1.

    "labels_100" is the test accuracy (R^2 of continuous factors) of a model trained on 100 rows, or on all rows if
    there are fewer. `model` is "logistic" (linear) or "gbt" (boosted trees), both as in disentanglement_lib.
    """
    check_choice("model", model, MODELS)
    if not len(labels):
        raise invalid("labels", labels, "numbers of train rows such as (10, 100)")
    for number in labels:
        check_at_least("labels", number, 1)
    split = read_split(codes, factors, test=test, seed=seed, factor_types=factor_types)
    found = {}
    for number, accuracy_K in zip(labels, accuracies(split, model, labels, seed, device_of(codes, device))):
        known = accuracy_K[~np.isnan(accuracy_K)]
        found[f"labels_{number}"] = float(known.mean()) if len(known) else 0.0
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
