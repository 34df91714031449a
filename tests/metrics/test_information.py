"""MIG and the mutual information under it: against stored reference values, and known answers."""

import doctest
import json
from pathlib import Path

import numpy as np
import pytest
import torch
from sklearn.metrics import mutual_info_score

from unweave.contract import UserError
from unweave.metrics import METRICS, information
from unweave.metrics.information import (
    contingency_table,
    discretize,
    entropies,
    factor_indices,
    mig_per_factor,
    mig_score,
    mutual_information_matrix,
    table_information,
)

GOLDEN = Path(__file__).parents[1] / "golden"
CASES = json.loads((GOLDEN / "metrics.json").read_text())["cases"]
SIZES = (4, 3, 5)
GRID = np.stack(np.unravel_index(np.arange(60), SIZES), axis=1)  # every combination once: factors independent
NOISY_FACTORS = GRID.repeat(20, axis=0)
NOISY = NOISY_FACTORS + np.random.default_rng(0).normal(scale=0.3, size=(1200, 3))


def golden(case: str) -> tuple[np.ndarray, np.ndarray]:
    with np.load(GOLDEN / "metrics.npz") as arrays:
        return arrays[f"{case}/codes"], arrays[f"{case}/factors"]


@pytest.mark.parametrize("case", CASES)
def test_mig_equals_the_reference(case):
    expected = CASES[case]["mig"]
    codes, factors = golden(case)
    assert mig_score(codes, factors) == pytest.approx(expected["discrete_mig"], abs=1e-8)
    assert mig_score(codes.astype(np.float64), factors) == pytest.approx(expected["discrete_mig"], abs=1e-8)
    np.testing.assert_allclose(mig_per_factor(codes, factors), expected["per_factor"], atol=1e-8)
    np.testing.assert_allclose(entropies(factors), expected["factor_entropy"], atol=1e-8)
    np.testing.assert_allclose(mutual_information_matrix(codes, factors), expected["mutual_information"], atol=1e-8)


@pytest.mark.parametrize("bins", [1, 2, 20, 100])
def test_bins_are_those_of_np_histogram(bins):
    codes, _ = golden("noise_030")
    codes = np.column_stack([codes, codes.round(), np.full(len(codes), 3.7)]).astype(np.float64)
    expected = [np.digitize(code, np.histogram(code, bins)[1][:-1]) for code in codes.T]
    np.testing.assert_array_equal(discretize(codes, bins), np.stack(expected, axis=1))


def test_information_equals_scikit_learn():
    rng = np.random.default_rng(0)
    codes = rng.normal(size=(500, 4))
    factors = np.column_stack([rng.integers(7, size=500), rng.normal(size=500).round(1), np.arange(500)])
    labels = factor_indices(factors).T  # scikit-learn warns about labels that are not whole numbers
    expected = [[mutual_info_score(factor, code) for factor in labels] for code in discretize(codes).T]
    np.testing.assert_allclose(mutual_information_matrix(codes, factors), expected, atol=1e-9)
    np.testing.assert_allclose(entropies(factors), [mutual_info_score(f, f) for f in labels], atol=1e-9)


def test_contingency_table_counts_pairs():
    table = contingency_table(np.array([0, 0, 2, 2]), np.array([1, 1, 0, 1]))
    np.testing.assert_array_equal(table, [[0, 2], [0, 0], [1, 1]])
    assert table_information(np.array([[3, 6], [1, 2]])) == 0.0  # independent: exactly zero
    assert table_information(np.eye(4, dtype=np.int64)) == pytest.approx(np.log(4))


def test_factor_values_may_be_any_numbers():
    factors = np.array([[-3.5, 900], [2.0, 7], [-3.5, 7]])
    np.testing.assert_array_equal(factor_indices(factors), [[0, 1], [1, 0], [0, 0]])
    assert mig_score(NOISY, NOISY_FACTORS * -7.5) == mig_score(NOISY, NOISY_FACTORS)


def test_perfect_codes_score_one():
    assert mig_score(GRID, GRID) == pytest.approx(1.0)  # integer codes too
    assert mig_score(-2.0 * GRID[:, [2, 0, 1]] + 5.0, GRID) == pytest.approx(1.0)


@pytest.mark.parametrize("codes", [np.zeros((60, 3)), np.full((60, 3), 1e30), np.hstack([GRID, GRID])])
def test_constant_and_duplicated_codes_score_zero(codes):
    assert mig_score(codes, GRID) == 0.0


def test_a_rotation_scores_low_and_a_code_at_the_float_spacing_is_defined():
    angle = np.pi / 4
    turn = np.array([[np.cos(angle), -np.sin(angle), 0], [np.sin(angle), np.cos(angle), 0], [0, 0, 1]])
    gaps = mig_per_factor((GRID - GRID.mean(axis=0)) @ turn, GRID)
    assert max(gaps[:2]) < 0.3 and gaps[2] == pytest.approx(1.0)
    nearly_constant = np.nextafter(np.full((60, 1), 1e8), np.where(GRID[:, :1] > 1, 2e8, 1e8))
    assert 0.0 <= mig_score(nearly_constant, GRID) <= 1.0


def test_dead_codes_change_nothing():
    dead = np.hstack([np.zeros((1200, 1)), NOISY, np.full((1200, 2), -4.0)])
    assert mig_score(dead, NOISY_FACTORS) == mig_score(NOISY, NOISY_FACTORS)


def test_one_code_has_zero_as_its_second_best():
    np.testing.assert_allclose(mig_per_factor(GRID[:, :1], GRID), [1.0, 0.0, 0.0], atol=1e-12)


def test_one_factor():
    assert mig_score(GRID, GRID[:, :1]) == pytest.approx(1.0)


def test_a_factor_with_one_value_is_left_out():
    factors = np.column_stack([NOISY_FACTORS, np.full(1200, 9)])
    assert mig_score(NOISY, factors) == mig_score(NOISY, NOISY_FACTORS)
    assert np.isnan(mig_per_factor(NOISY, factors)[3])
    assert entropies(factors)[3] == 0.0


def test_few_rows():
    assert mig_score([[0.0, 1.0], [5.0, 1.0]], [[0], [1]]) == 1.0
    with pytest.raises(UserError, match="factors: no column varies over 1 rows"):
        mig_score([[0.0, 1.0]], [[0, 3]])


def test_order_and_positive_scale_of_codes_do_not_matter():
    score = mig_score(NOISY, NOISY_FACTORS)
    assert mig_score(NOISY[:, [1, 2, 0]], NOISY_FACTORS) == score
    assert mig_score(NOISY * [0.25, 4.0, 1024.0], NOISY_FACTORS) == score  # powers of two: the same roundings
    assert mig_score(NOISY * 3.3, NOISY_FACTORS) == pytest.approx(score, abs=1e-3)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_tensors_are_accepted(dtype):
    codes = torch.tensor(NOISY, dtype=dtype, requires_grad=True)
    score = mig_score(codes, torch.tensor(NOISY_FACTORS))
    assert type(score) is float
    assert score == mig_score(codes.detach().numpy(), NOISY_FACTORS)
    assert 0.0 < mig_score(codes.bfloat16(), torch.tensor(NOISY_FACTORS)) < 1.0


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize(
    ("codes", "factors", "message"),
    [
        ([[np.nan], [1.0]], [[0], [1]], "codes: contains NaN"),
        ([[0.0], [1.0]], [[0], [np.inf]], "factors: contains NaN or infinity"),
        ([0.0, 1.0], [[0], [1]], r"codes: has shape \(2,\)"),
        ([[0.0], [1.0]], [[0], [1], [2]], "factors: has 3 rows but codes has 2"),
        ([["a"], ["b"]], [[0], [1]], "codes: holds <U1"),
        (np.zeros((0, 2)), np.zeros((0, 2)), r"codes: has shape \(0, 2\)"),
        ([[0.0], [1.0]], [[4], [4]], "factors: no column varies"),
    ],
)
def test_what_cannot_be_scored_is_named(metric, codes, factors, message):
    with pytest.raises(UserError, match=message):
        METRICS[metric].function(codes, factors)


def test_bins_must_be_positive():
    with pytest.raises(UserError, match="bins: is 0; accepted is 1 or more"):
        mig_score(NOISY, NOISY_FACTORS, bins=0)


def test_docstring_examples():
    result = doctest.testmod(information)
    assert result.attempted > 0 and result.failed == 0
