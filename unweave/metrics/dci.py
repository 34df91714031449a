"""DCI: disentanglement, completeness and informativeness, from predictors of the factors.

Shape letters: N rows, D codes, K factors.
"""

from typing import Any

import numpy as np

from unweave.metrics.histogram_mi import device_of
from unweave.metrics.inputs import Array, FactorTypes, Floats, TestRows
from unweave.metrics.metric import Metric
from unweave.metrics.solvers.predictors import fit_predictors, read_split

_LEAST = 1e-11  # added to every importance, as in disentanglement_lib


def importance_matrix(
    codes: Array,
    factors: Array,
    *,
    predictor: str = "gbt",
    test: TestRows = None,
    seed: int = 0,
    factor_types: FactorTypes = None,
    device: str | None = None,
) -> Floats:
    """Return the importance of each code for predicting each factor [D, K], with the options of `dci_scores`.

    A column sums to 1, or to 0 if the factor has a single value or no code is used.
    """
    options: dict[str, Any] = {"test": test, "seed": seed, "factor_types": factor_types}
    return dci_with_importance(codes, factors, predictor=predictor, device=device, **options)[1]


def normalised_entropy(importance: Floats) -> Floats:
    """Return the normalised entropy of each row: 0 for a single non-zero entry, 1 for equal entries."""
    if importance.shape[1] == 1:
        return np.zeros(len(importance))
    share = importance + _LEAST
    share = share / share.sum(axis=1, keepdims=True)
    return -(share * np.log(share)).sum(axis=1) / np.log(importance.shape[1])


def concentration(importance: Floats) -> float:
    """Return the mean of 1 - normalised_entropy, weighted by the sums of the rows; 0 if all importances are 0."""
    weight = importance.sum(axis=1)
    if not weight.sum() > 0:
        return 0.0
    return float(np.clip(((1 - normalised_entropy(importance)) * weight).sum() / weight.sum(), 0.0, 1.0))


def dci_scores(
    codes: Array,
    factors: Array,
    *,
    predictor: str = "gbt",
    test: TestRows = None,
    seed: int = 0,
    factor_types: FactorTypes = None,
    device: str | None = None,
) -> dict[str, float]:
    """DCI (Eastwood & Williams 2018, section 2, https://openreview.net/forum?id=By-7dz-AZ), each in 0..1.

    Each factor is predicted from all codes. Disentanglement: each code is used for only one factor; completeness:
    each factor uses only one code; informativeness: accuracy on the test rows, or R^2 of continuous factors.
    `predictor` is "gbt" (boosted trees as in disentanglement_lib), "forest", "lasso" or "logistic".
    """
    options: dict[str, Any] = {"test": test, "seed": seed, "factor_types": factor_types}
    return dci_with_importance(codes, factors, predictor=predictor, device=device, **options)[0]


def dci_with_importance(
    codes: Array, factors: Array, *, predictor: str = "gbt", seed: int = 0, device: str | None = None, **options: Any
) -> tuple[dict[str, float], Floats]:
    """Return `dci_scores` and the `importance_matrix` they are computed from, with one fit."""
    split = read_split(codes, factors, seed=seed, **options)
    found = fit_predictors(split, predictor, seed=seed, device=device_of(codes, device))
    importance_DK = np.zeros((split.train.codes.shape[1], len(split.train.factor_types)))
    importance_DK[:, split.factors] = found.importance
    accuracies = found.accuracy[~np.isnan(found.accuracy)]
    scores = {
        "disentanglement": concentration(found.importance),
        "completeness": concentration(found.importance.T),
        "informativeness": float(accuracies.mean()) if len(accuracies) else 0.0,
    }
    return scores, importance_DK


DCI = Metric(
    "dci",
    dci_scores,
    "DCI",
    "How predictors of the factors use the latents, and how well they predict.",
    definition="disentanglement_lib: boosted trees",
    parts={
        "disentanglement": "Whether each latent is used to predict only one factor.",
        "completeness": "Whether each factor is predicted from only one latent.",
        "informativeness": "How well the factors are predicted from all latents, on other observations.",
    },
    with_importance=dci_with_importance,
    slow=True,
)
