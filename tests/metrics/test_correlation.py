"""Matched correlations, Gaussian total correlation, active latents: references, closed forms, known answers."""

import doctest
import itertools
import json
from pathlib import Path

import numpy as np
import pytest
from raises import raises
from scipy.stats import spearmanr

from unweave.metrics import correlation
from unweave.metrics.correlation import (
    active_dimensions,
    covariance,
    gaussian_total_correlation,
    gaussian_wasserstein_correlation,
    mcc_score,
)

STORED = Path(__file__).parents[1] / "golden"
CASES = json.loads((STORED / "information.json").read_text())["cases"]
RNG = np.random.default_rng(0)
FACTORS = RNG.normal(size=(500, 3))
CODES = FACTORS @ RNG.normal(size=(3, 4)) + RNG.normal(size=(500, 4))


@pytest.mark.parametrize("case", ["identity", "rotation", "noise_030"])
def test_gaussian_scores_equal_the_reference(case):
    expected = CASES[case]["unsupervised"]
    with np.load(STORED / "metrics.npz") as arrays:
        codes = arrays[f"{case}/codes"]
    assert gaussian_total_correlation(codes) == pytest.approx(expected["gaussian_total_correlation"], abs=1e-10)
    assert gaussian_wasserstein_correlation(codes) == pytest.approx(
        expected["gaussian_wasserstein_correlation"], abs=1e-10
    )
    assert gaussian_wasserstein_correlation(codes, normalised=True) == pytest.approx(
        expected["gaussian_wasserstein_correlation_norm"], abs=1e-10
    )


def test_total_correlation_of_two_gaussians_is_the_closed_form():
    pair = np.random.default_rng(1).multivariate_normal([0, 0], [[1.0, 0.8], [0.8, 1.0]], size=200_000)
    assert gaussian_total_correlation(pair) == pytest.approx(-0.5 * np.log(1 - 0.8**2), abs=0.005)
    assert gaussian_total_correlation(pair * [100.0, -0.01] + 7.0) == pytest.approx(gaussian_total_correlation(pair))


def test_redundant_and_constant_codes_have_a_value():
    moving = FACTORS[:, :1]
    assert gaussian_total_correlation(np.hstack([FACTORS, np.full((500, 2), 0.1)])) == pytest.approx(
        gaussian_total_correlation(FACTORS)
    )
    assert gaussian_total_correlation(np.hstack([moving, moving])) == pytest.approx(
        -0.5 * (np.log(2.0) + np.log(1e-12)), abs=1e-6
    )
    assert gaussian_total_correlation(np.zeros((9, 2))) == gaussian_total_correlation([[1.0, 2.0]]) == 0.0
    assert gaussian_wasserstein_correlation(np.zeros((9, 2)), normalised=True) == 0.0


def test_covariance_is_that_of_numpy_however_it_is_cut(monkeypatch):
    np.testing.assert_allclose(covariance(CODES), np.cov(CODES.T))
    monkeypatch.setattr("unweave.metrics.correlation.CHUNK", 7)
    np.testing.assert_allclose(covariance(CODES), np.cov(CODES.T))


@pytest.mark.parametrize("method", ["pearson", "spearman"])
def test_mcc_is_the_optimal_matching(method):
    if method == "pearson":
        table = np.corrcoef(CODES.T, FACTORS.T)[:4, 4:]
    else:
        table = spearmanr(CODES, FACTORS).statistic[:4, 4:]
    best = max(np.abs(table[list(rows), range(3)]).sum() for rows in itertools.permutations(range(4), 3))
    assert mcc_score(CODES, FACTORS, method=method) == pytest.approx(best / 3)


def test_mcc_known_answers():
    assert mcc_score(-4.0 * FACTORS[:, [2, 0, 1]] + 1.0, FACTORS) == pytest.approx(1.0)
    assert mcc_score(np.hstack([FACTORS, FACTORS]), FACTORS) == pytest.approx(1.0)
    assert mcc_score(np.exp(FACTORS), FACTORS, method="spearman") == pytest.approx(1.0)
    assert mcc_score(np.exp(FACTORS), FACTORS) < 0.9
    assert mcc_score(FACTORS[:, :1], FACTORS) == pytest.approx(1 / 3, abs=0.05)  # two factors have no partner
    assert mcc_score(np.zeros((500, 2)), FACTORS) == 0.0
    assert mcc_score(np.random.default_rng(2).normal(size=(500, 3)), FACTORS) < 0.15
    angle = np.random.default_rng(3).uniform(0, 2 * np.pi, size=(500, 1))
    assert mcc_score(np.hstack([np.sin(angle), np.cos(angle)]), angle) < 0.85  # no single line tells an angle


def test_mcc_leaves_missing_rows_out():
    factors = FACTORS.copy()
    factors[:100, 0] = np.nan
    assert mcc_score(FACTORS, factors) == pytest.approx(1.0)
    with raises("method", value="kendall", accepted=["pearson", "spearman"]):
        mcc_score(CODES, FACTORS, method="kendall")


def test_active_latents_are_counted_by_variance():
    codes = np.column_stack([FACTORS, 0.05 * FACTORS[:, 0], np.full(500, 0.1)])
    assert active_dimensions(codes) == 3.0
    assert active_dimensions(codes, threshold=0.0) == 4.0
    assert active_dimensions(codes[:1]) == 0.0
    with raises("threshold", value=-1):
        active_dimensions(codes, threshold=-1)


def test_docstring_examples():
    result = doctest.testmod(correlation)
    assert result.attempted > 0 and result.failed == 0
