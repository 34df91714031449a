"""Explicitness: how well a linear classifier of all codes ranks the rows of each factor value.

Shape letters: N rows, D codes, K factors, V values of one factor.
"""

from __future__ import annotations

import numpy as np

from unweave.metrics.inputs import Array, FactorTypes, Floats, Indices, classes
from unweave.metrics.metric import Metric
from unweave.metrics.parallel import parallel_map
from unweave.metrics.solvers.linear import class_scores, fit_logistic, probabilities, standardize
from unweave.metrics.solvers.predictors import Split, read_split


def areas(scores_NV: Floats, labels_N: Indices) -> Floats:
    """The area under the ROC curve of each class against the rest, for the classes that some rows have and some lack.

    It is the chance that a row of the class scores higher than a row without it, ties counting half.
    """
    from scipy.stats import rankdata

    count_V = np.bincount(labels_N, minlength=scores_NV.shape[1] + 1)[: scores_NV.shape[1]]
    told = np.flatnonzero((count_V > 0) & (count_V < len(labels_N)))
    ranks = rankdata(scores_NV[:, told], axis=0)
    ranks_of_class = np.array([ranks[labels_N == v, column].sum() for column, v in enumerate(told)])
    hits = count_V[told].astype(np.float64)
    return (ranks_of_class - hits * (hits + 1) / 2) / (hits * (len(labels_N) - hits))


def explicitness_per_factor(split: Split) -> Floats:
    """The mean area over the values of each factor, on the test rows [K]; NaN where they tell nothing."""
    train_ND, test_ND = standardize(split.train.codes, split.test.codes)

    def mean_area(k: int) -> float:
        rows, labels = classes(split.train, k)
        test_rows, test_labels = classes(split.test, k, like=split.train)
        weights = fit_logistic(train_ND[rows], labels, int(labels.max()) + 1)
        per_class = areas(probabilities(class_scores(weights, test_ND[test_rows])), test_labels)
        return float(per_class.mean()) if len(per_class) else np.nan

    return np.array(parallel_map(mean_area, split.factors))


def explicitness_score(
    codes: Array,
    factors: Array,
    *,
    test: tuple[Array, Array] | None = None,
    seed: int = 0,
    factor_types: FactorTypes = None,
) -> float:
    """Explicitness (Ridgeway & Mozer 2018, section 3, https://arxiv.org/abs/1802.05312), 0.5 by guessing, 1 at best.

    A logistic regression of all codes predicts each factor; the score is the area under its ROC curves on the
    test rows, one value against the rest, mean over values and then over factors.
    """
    per_factor = explicitness_per_factor(read_split(codes, factors, test=test, seed=seed, factor_types=factor_types))
    told = per_factor[~np.isnan(per_factor)]
    return float(told.mean()) if len(told) else 0.5


EXPLICITNESS = Metric(
    "explicitness",
    explicitness_score,
    "Explicitness",
    "How well a linear classifier on all latents ranks the values of each factor; 0.5 is guessing.",
    definition="disentanglement_lib: area under the ROC curve, test rows",
)
