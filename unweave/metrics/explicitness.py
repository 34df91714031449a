"""Explicitness: area under the ROC curve of linear classifiers of the factors.

Shape letters: N rows, D codes, K factors, V values of one factor.
"""

import numpy as np

from unweave.errors import renamed_arguments
from unweave.metrics.inputs import Array, FactorTypes, Floats, Indices, TestRows, classes
from unweave.metrics.metric import Metric
from unweave.metrics.parallel import parallel_map
from unweave.metrics.solvers.linear import class_scores, fit_logistic, probabilities, standardize
from unweave.metrics.solvers.predictors import Split, read_split


def areas(scores_NV: Floats, labels_N: Indices) -> Floats:
    """Return the area under the one-vs-rest ROC curve of each class that some but not all rows have.

    It is the probability that a row of the class scores higher than another row; ties count half.
    """
    from scipy.stats import rankdata

    count_V = np.bincount(labels_N, minlength=scores_NV.shape[1] + 1)[: scores_NV.shape[1]]
    present = np.flatnonzero((count_V > 0) & (count_V < len(labels_N)))
    ranks = rankdata(scores_NV[:, present], axis=0)
    ranks_of_class = np.array([ranks[labels_N == v, column].sum() for column, v in enumerate(present)])
    hits = count_V[present].astype(np.float64)
    return (ranks_of_class - hits * (hits + 1) / 2) / (hits * (len(labels_N) - hits))


def explicitness_per_factor(split: Split) -> Floats:
    """Return the mean area over the values of each factor on the test rows [K]; NaN if no area is defined."""
    train_ND, test_ND = standardize(split.train.codes, split.test.codes)

    def mean_area(k: int) -> float:
        rows, labels = classes(split.train, k)
        test_rows, test_labels = classes(split.test, k, like=split.train)
        weights = fit_logistic(train_ND[rows], labels, int(labels.max()) + 1)
        per_class = areas(probabilities(class_scores(weights, test_ND[test_rows])), test_labels)
        return float(per_class.mean()) if len(per_class) else np.nan

    return np.array(parallel_map(mean_area, split.factors))


@renamed_arguments(kinds="factor_types")
def explicitness_score(
    codes: Array, factors: Array, *, test: TestRows = None, seed: int = 0, factor_types: FactorTypes = None
) -> float:
    """Explicitness (Ridgeway & Mozer 2018, section 3, https://arxiv.org/abs/1802.05312); 0.5 is chance, 1 is perfect.

    A logistic regression on all codes predicts each factor. The score is the area under its one-vs-rest ROC curves on
    the test rows, averaged over values and then over factors.
    """
    per_factor = explicitness_per_factor(read_split(codes, factors, test=test, seed=seed, factor_types=factor_types))
    known = per_factor[~np.isnan(per_factor)]
    return float(known.mean()) if len(known) else 0.5


EXPLICITNESS = Metric(
    "explicitness",
    explicitness_score,
    "Explicitness",
    "How well a linear classifier on all latents ranks the values of each factor; 0.5 is guessing.",
    definition="disentanglement_lib: area under the ROC curve, test rows",
)
