"""Explicitness: against stored reference values, scikit-learn's areas, and known answers."""

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from sklearn.metrics import roc_auc_score

from unweave.metrics.explicitness import explicitness_per_factor, explicitness_score, roc_auc_per_class
from unweave.metrics.solvers.predictors import read_split

STORED = Path(__file__).parents[1] / "golden"
CASES = json.loads((STORED / "predictors.json").read_text())["cases"]
FACTORS = np.stack(np.unravel_index(np.arange(60), (4, 3, 5)), axis=1).repeat(10, axis=0)
CODES = FACTORS + np.random.default_rng(1).normal(scale=0.3, size=(600, 3))


@pytest.mark.parametrize("case", CASES)
def test_score_is_the_reference(case):
    with np.load(STORED / "metrics.npz") as train, np.load(STORED / "predictors.npz") as test:
        codes, factors = train[f"{case}/codes"], train[f"{case}/factors"]
        held_out = test[f"{case}/codes"], test[f"{case}/factors"]
    expected = CASES[case]["explicitness"]
    per_factor = explicitness_per_factor(read_split(codes, factors, test=held_out, seed=0, factor_types=None))
    np.testing.assert_allclose(per_factor, expected["per_factor_test"], atol=2e-3)
    assert per_factor.mean() == pytest.approx(expected["explicitness_score_test"], abs=1e-3)


def test_areas_are_those_of_scikit_learn():
    rng = np.random.default_rng(0)
    labels, scores = rng.integers(4, size=300), rng.normal(size=(300, 4)).round(1)  # rounded: ties
    scores[np.arange(300), labels] += 0.5
    expected = [roc_auc_score(labels == v, scores[:, v]) for v in range(4)]
    np.testing.assert_allclose(roc_auc_per_class(scores, labels), expected)


def test_areas_leave_out_what_the_rows_cannot_tell():
    scores = np.array([[0.1, 0.9, 0.0], [0.8, 0.2, 0.0], [0.7, 0.3, 0.0]])
    np.testing.assert_allclose(roc_auc_per_class(scores, np.array([1, 0, 0])), [1.0, 1.0])  # nobody has the third
    assert len(roc_auc_per_class(scores, np.array([1, 1, 1]))) == 0
    np.testing.assert_allclose(roc_auc_per_class(scores, np.array([1, 0, 3])), [0.5 + 0.5, 1.0])  # 3: unknown


def test_perfect_scaled_and_shifted_codes_score_one():
    assert explicitness_score(FACTORS, FACTORS) == pytest.approx(1.0, abs=1e-3)
    assert explicitness_score(CODES * 1e-6 + 40, FACTORS) == pytest.approx(explicitness_score(CODES, FACTORS), abs=1e-6)


def test_codes_without_information_score_a_half():
    assert explicitness_score(np.full((600, 2), 0.1), FACTORS) == 0.5
    noise = np.random.default_rng(0).normal(size=(600, 3))
    assert explicitness_score(noise, FACTORS) == pytest.approx(0.5, abs=0.08)


def test_a_constant_code_does_not_change_the_score():
    dead = np.column_stack([CODES, np.full(600, 0.1)])
    assert explicitness_score(dead, FACTORS) == pytest.approx(explicitness_score(CODES, FACTORS), abs=1e-4)


def test_missing_values_and_no_test_rows():
    factors = FACTORS.astype(float)
    factors[::4, 1] = np.nan
    assert 0.9 < explicitness_score(CODES, factors) <= 1.0
    unknown = np.full((5, 3), np.nan)
    assert explicitness_score(CODES, FACTORS, test=(CODES[:5], unknown)) == 0.5


def test_the_seed_splits_and_tensors_are_accepted():
    score = explicitness_score(CODES, FACTORS, seed=2)
    assert type(score) is float
    assert explicitness_score(torch.tensor(CODES), torch.tensor(FACTORS), seed=2) == score
    assert explicitness_score(CODES, FACTORS, seed=3) != score
