"""Boosted trees: compared with scikit-learn on small tables, where both are exact; missing values, constant codes."""

import numpy as np
import pytest
from sklearn.ensemble import GradientBoostingClassifier, GradientBoostingRegressor

from unweave.metrics.solvers.boosting import Target, boost

rng = np.random.default_rng(0)
CODES = rng.normal(size=(1400, 4))
SUM = CODES[:, 0] + 0.5 * CODES[:, 1] ** 2 + 0.4 * rng.normal(size=1400)
CLASSES = np.digitize(SUM, [-0.5, 0.2, 1.0])
TRAIN, TEST = slice(0, 400), slice(400, 1400)


def classes(values, rows=TRAIN):
    return Target(values[rows].astype(float), np.ones(len(values[rows]), bool), int(values.max()) + 1)


def measured(values, rows=TRAIN):
    return Target(values[rows], np.ones(len(values[rows]), bool), 0)


def shared_accuracy(scores, truth):
    return ((scores[:, 0] > 0) == truth).mean() if scores.shape[1] == 1 else (scores.argmax(axis=1) == truth).mean()


@pytest.mark.parametrize("labels", [CLASSES, (CLASSES > 1).astype(int)], ids=["four classes", "two classes"])
def test_classifier_is_that_of_scikit_learn(labels):
    theirs = GradientBoostingClassifier(random_state=0).fit(CODES[TRAIN], labels[TRAIN])
    ours = boost(CODES[TRAIN], [classes(labels)], CODES[TEST])
    np.testing.assert_allclose(ours.importance[:, 0], theirs.feature_importances_, atol=0.015)
    assert ours.scores[0].shape == (1000, 4 if labels.max() == 3 else 1)
    truth = labels[TEST]
    assert shared_accuracy(ours.scores[0], truth) == pytest.approx(theirs.score(CODES[TEST], truth), abs=0.02)
    assert shared_accuracy(ours.scores[0], theirs.predict(CODES[TEST])) > 0.93


def test_regressor_is_that_of_scikit_learn():
    theirs = GradientBoostingRegressor(random_state=0).fit(CODES[TRAIN], SUM[TRAIN])
    ours = boost(CODES[TRAIN], [measured(SUM)], CODES[TEST])
    np.testing.assert_allclose(ours.importance[:, 0], theirs.feature_importances_, atol=0.01)
    assert np.corrcoef(ours.scores[0][:, 0], theirs.predict(CODES[TEST]))[0, 1] > 0.995


def test_few_values_are_split_exactly():
    """Codes of few values: no bin holds two, and the scores themselves agree."""
    codes = CODES.round(1)
    theirs = GradientBoostingRegressor(random_state=0).fit(codes[TRAIN], SUM[TRAIN])
    ours = boost(codes[TRAIN], [measured(SUM)], codes[TRAIN])
    assert np.abs(ours.scores[0][:, 0] - theirs.predict(codes[TRAIN])).max() < 0.05


def test_factors_are_independent_of_each_other():
    targets = [classes(CLASSES), measured(SUM), classes((CLASSES > 1).astype(int))]
    together = boost(CODES[TRAIN], targets, CODES[TEST], stages=20)
    for k, target in enumerate(targets):
        alone = boost(CODES[TRAIN], [target], CODES[TEST], stages=20)
        np.testing.assert_allclose(together.importance[:, k], alone.importance[:, 0], atol=1e-6)
        np.testing.assert_allclose(together.scores[k], alone.scores[0], atol=1e-4)


def test_many_classes_grow_in_several_parts():
    labels = np.argsort(np.argsort(CODES[:, 2])) // 35  # 40 classes of 35 rows
    found = boost(CODES, [classes(labels, slice(None))], CODES, stages=20)
    assert found.importance[2, 0] > 0.99
    assert (found.scores[0].argmax(axis=1) == labels).mean() > 0.95


def test_rows_without_the_factor_are_left_out():
    present = rng.random(400) < 0.5
    values = np.where(present, CLASSES[TRAIN], 3.0)
    ours = boost(CODES[TRAIN], [Target(values, present, 4), measured(SUM)], CODES[TEST], stages=30)
    kept = Target(CLASSES[TRAIN][present].astype(float), np.ones(present.sum(), bool), 4)
    fewer = boost(CODES[TRAIN][present], [kept], CODES[TEST], stages=30)
    np.testing.assert_allclose(ours.importance[:, 0], fewer.importance[:, 0], atol=0.02)
    assert (ours.scores[0].argmax(axis=1) == fewer.scores[0].argmax(axis=1)).mean() > 0.9


def test_dead_codes_are_never_used():
    codes = np.column_stack([np.full(1400, 0.1), CODES, np.zeros(1400)])
    with_dead = boost(codes[TRAIN], [classes(CLASSES)], codes[TEST], stages=10)
    without = boost(CODES[TRAIN], [classes(CLASSES)], CODES[TEST], stages=10)
    np.testing.assert_array_equal(with_dead.importance[1:5], without.importance)
    assert with_dead.importance[[0, 5]].sum() == 0.0


def test_all_codes_dead_predict_how_frequent_values_are():
    found = boost(np.full((400, 2), 3.0), [classes(CLASSES), measured(SUM)], np.full((5, 2), 3.0))
    assert found.importance.sum() == 0.0
    frequency = np.bincount(CLASSES[TRAIN]) / 400
    probability = np.exp(found.scores[0])
    np.testing.assert_allclose(probability / probability.sum(axis=1, keepdims=True), [frequency] * 5, atol=1e-3)
    np.testing.assert_allclose(found.scores[1], SUM[TRAIN].mean(), atol=1e-3)


def test_the_seed_decides_between_equals():
    codes = np.hstack([CODES[:, :1], CODES[:, :1]])
    first, again, other = (boost(codes[TRAIN], [classes(CLASSES)], codes[TEST], seed=s, stages=20) for s in (1, 1, 2))
    np.testing.assert_array_equal(first.importance, again.importance)
    assert not np.array_equal(first.importance, other.importance)
    assert 0.3 < first.importance[0, 0] < 0.7


@pytest.mark.gpu
def test_a_gpu_finds_the_same():
    targets = [classes(CLASSES), measured(SUM)]
    here, there = (boost(CODES[TRAIN], targets, CODES[TEST], device=device) for device in ("cpu", "cuda"))
    np.testing.assert_allclose(here.importance, there.importance, atol=0.01)
    again = boost(CODES[TRAIN], targets, CODES[TEST], device="cuda")
    np.testing.assert_array_equal(there.importance, again.importance)
