"""Information by neighbours and InfoMEC: against scikit-learn and brute force, and known answers."""

import numpy as np
import pytest
from raises import raises
from scipy.special import digamma
from sklearn.feature_selection import mutual_info_classif
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss

from unweave.metrics.infomec import infomec_scores as full_scores
from unweave.metrics.infomec import normalised_max_share
from unweave.metrics.knn_mi import neighbour_distances, neighbour_information

RNG = np.random.default_rng(0)
LABELS = RNG.integers(4, size=600)
CODE = LABELS + RNG.normal(scale=0.5, size=600)
FACTORS = np.stack(np.unravel_index(np.arange(60), (4, 3, 5)), axis=1).repeat(10, axis=0)
NOISY = FACTORS + RNG.normal(scale=0.2, size=(600, 3))


def infomec_scores(codes, factors, **options):
    """With fewer iterations than the default, for time."""
    return full_scores(codes, factors, **{"iterations": 15, **options})


def test_distances_are_those_of_brute_force():
    values = np.sort(RNG.normal(size=30).round(1))  # with ties
    for k in (1, 3, 29):
        expected = np.sort(np.abs(values[:, None] - values), axis=1)[:, k]
        np.testing.assert_allclose(neighbour_distances(values, k), expected)


@pytest.mark.parametrize("neighbours", [1, 3, 10])
def test_information_equals_scikit_learn(neighbours):
    expected = mutual_info_classif(CODE[:, None], LABELS, n_neighbors=neighbours, random_state=0)[0]
    assert neighbour_information(CODE, LABELS, neighbours=neighbours) == pytest.approx(expected, abs=1e-6)


def test_classes_seen_once_are_left_out_and_small_ones_take_fewer_neighbours():
    labels = np.concatenate([LABELS, [7, 8, 8]])
    code = np.concatenate([CODE, [0.5, 1.5, 2.5]])
    expected = mutual_info_classif(code[:, None], labels, n_neighbors=10, random_state=0)[0]
    assert neighbour_information(code, labels) == pytest.approx(expected, abs=1e-6)
    assert neighbour_information(CODE[:4], np.arange(4)) == 0.0


def test_information_between_a_gaussian_and_its_sign():
    code = RNG.normal(size=20_000)
    assert neighbour_information(code, (code > 0).astype(np.int64)) == pytest.approx(np.log(2), abs=0.01)


def test_repeated_values_are_counted():
    assert neighbour_information(LABELS.astype(float), LABELS) == pytest.approx(
        digamma(600) - np.mean(digamma(np.bincount(LABELS)[LABELS])), abs=0.02
    )
    half = np.where(RNG.random(600) < 0.5, 0.0, RNG.normal(size=600))  # half of it in one place, as after a ReLU
    assert neighbour_information(half, LABELS) < 0.1


def test_concentration():
    assert normalised_max_share(np.eye(3)) == 1.0
    assert normalised_max_share(np.ones((2, 3))) == 0.0
    assert normalised_max_share(np.zeros((2, 3))) == 0.0
    assert normalised_max_share(np.array([[0.5], [0.0]])) == 0.5  # one column: only whether there is anything


def test_known_answers():
    perfect = infomec_scores(NOISY, FACTORS)
    assert set(perfect) == {"modularity", "compactness", "explicitness"}
    assert perfect["modularity"] > 0.85 and perfect["compactness"] > 0.85 and perfect["explicitness"] > 0.8
    turned = infomec_scores(NOISY @ np.linalg.qr(RNG.normal(size=(3, 3)))[0], FACTORS)
    assert turned["modularity"] < 0.6 and turned["compactness"] < 0.6
    assert turned["explicitness"] == pytest.approx(perfect["explicitness"], abs=0.02)  # a linear model turns back
    twice = infomec_scores(np.hstack([NOISY, NOISY]), FACTORS)
    assert twice["modularity"] > 0.85 and twice["compactness"] < 0.6
    noise = infomec_scores(RNG.normal(size=(600, 3)), FACTORS)
    assert noise["explicitness"] < 0.05


def test_explicitness_equals_its_equation():
    codes = (NOISY - NOISY.mean(axis=0)) / NOISY.std(axis=0)
    expected = []
    for factor in FACTORS.T:
        model = LogisticRegression(C=np.inf, class_weight="balanced", max_iter=5000).fit(codes, factor)
        expected.append(1 - log_loss(factor, model.predict_proba(codes)) / np.log(factor.max() + 1))
    found = infomec_scores(NOISY, FACTORS, iterations=2000)["explicitness"]
    assert found == pytest.approx(np.mean(expected), abs=0.01)


def test_continuous_factors_by_least_squares():
    factors = RNG.normal(size=(400, 2))
    codes = np.column_stack([factors[:, 0] + factors[:, 1], RNG.normal(size=400)])
    share = infomec_scores(codes, factors)["explicitness"]
    expected = [np.corrcoef(codes[:, 0], factor)[0, 1] ** 2 for factor in factors.T]
    assert share == pytest.approx(np.mean(expected), abs=0.02)


def test_flat_codes_are_pruned_and_dead_ones_score_zero():
    pruned = infomec_scores(np.hstack([NOISY, 0.001 * NOISY]), FACTORS)
    assert pruned["compactness"] == infomec_scores(NOISY, FACTORS)["compactness"]
    assert infomec_scores(np.zeros((600, 2)), FACTORS) == dict.fromkeys(pruned, 0.0)


def test_many_rows_are_drawn_by_the_seed():
    few = infomec_scores(NOISY, FACTORS, rows=200, seed=1)
    assert few == infomec_scores(NOISY, FACTORS, rows=200, seed=1) != infomec_scores(NOISY, FACTORS, rows=200, seed=2)


@pytest.mark.parametrize(("option", "value"), [("neighbours", 0), ("prune", -1), ("rows", 1), ("iterations", 0)])
def test_options_out_of_range(option, value):
    with raises(option, value=value):
        infomec_scores(NOISY, FACTORS, **{option: value})
