"""Linear classifiers: against scikit-learn's."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from unweave.metrics.solvers.linear import class_scores, fit_logistic, fit_logistics, probabilities, standardize

rng = np.random.default_rng(0)
CODES = rng.normal(size=(600, 3))
LABELS = np.digitize(CODES[:, 0] + 0.5 * rng.normal(size=600), [-0.6, 0.1, 0.8])


@pytest.mark.parametrize("strength", [0.01, 1.0, 100.0])
@pytest.mark.parametrize("labels", [LABELS, (LABELS > 1).astype(int)], ids=["four classes", "two classes"])
def test_weights_are_those_of_scikit_learn(labels, strength):
    theirs = LogisticRegression(C=strength).fit(CODES, labels)
    ours = fit_logistic(CODES, labels, int(labels.max()) + 1, inverse_penalty=strength)
    free = ours if labels.max() > 1 else ours[:, 1:]
    np.testing.assert_allclose(free[:-1].T, theirs.coef_, atol=2e-3, rtol=2e-3)
    np.testing.assert_allclose(probabilities(class_scores(ours, CODES)), theirs.predict_proba(CODES), atol=1e-3)


@pytest.mark.parametrize("labels", [LABELS, (LABELS > 1).astype(int)], ids=["four classes", "two classes"])
def test_problems_solved_together_equal_problems_solved_separately(labels):
    """Each problem has its own rows and strength; the weights equal those of scikit-learn."""
    counts = np.array([np.arange(600) % 3 != n for n in (0, 1, 2, 0)], np.float64)
    strengths = np.array([0.01, 1.0, 100.0, 10_000.0])
    found = fit_logistics(CODES, labels, int(labels.max()) + 1, counts, strengths)
    for weights, count, strength in zip(found, counts, strengths, strict=True):
        alone = LogisticRegression(C=strength).fit(CODES[count > 0], labels[count > 0])
        free = weights if labels.max() > 1 else weights[:, 1:]
        np.testing.assert_allclose(free[:-1].T, alone.coef_, atol=5e-3, rtol=5e-3)


def test_a_class_without_rows_is_never_predicted():
    weights = fit_logistic(CODES, np.where(LABELS == 2, 3, LABELS), 4)
    assert np.isfinite(weights).all()
    assert not (class_scores(weights, CODES).argmax(axis=1) == 2).any()


def test_standardize_by_the_train_rows():
    train = np.column_stack([CODES * [1.0, 5.0, 1e-9] + 3, np.full(600, 0.1)])
    ours, other = standardize(train, train[:5] + 1)
    np.testing.assert_allclose(ours[:, :3].mean(axis=0), 0, atol=1e-6)
    np.testing.assert_allclose(ours[:, :3].std(axis=0), 1)
    assert (ours[:, 3] == 0).all() and (other[:, 3] == 0).all()  # 0.1 has no exact mean
    np.testing.assert_allclose(other[:, 0] - ours[:5, 0], 1 / train[:, 0].std())
