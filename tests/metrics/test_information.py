"""MIG and the mutual information under it: against stored reference values, and known answers."""

import doctest
import json
from pathlib import Path

import numpy as np
import pytest
import torch
from raises import raises
from sklearn.metrics import mutual_info_score

from unweave.metrics import information
from unweave.metrics.histogram_mi import (
    bin_table,
    contingency_table,
    count_binned,
    count_table,
    discretize,
    entropies,
    information_from_counts,
    mutual_information,
    mutual_information_matrix,
)
from unweave.metrics.information import (
    dcimig_score,
    group_mig_score,
    jemmig_score,
    mig_per_factor,
    mig_score,
    mig_sup_score,
    modularity_score,
)
from unweave.metrics.inputs import read_table

GOLDEN = Path(__file__).parents[1] / "golden"
CASES = json.loads((GOLDEN / "metrics.json").read_text())["cases"]
OTHERS = json.loads((GOLDEN / "information.json").read_text())["cases"]
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
    # scikit-learn warns about labels that are not integers
    labels = [np.unique(factor, return_inverse=True)[1] for factor in factors.T]
    expected = [[mutual_info_score(factor, code) for factor in labels] for code in discretize(codes).T]
    np.testing.assert_allclose(mutual_information_matrix(codes, factors), expected, atol=1e-9)
    np.testing.assert_allclose(entropies(factors), [mutual_info_score(f, f) for f in labels], atol=1e-9)


def test_contingency_table_counts_pairs():
    table = contingency_table(np.array([0, 0, 2, 2]), np.array([1, 1, 0, 1]))
    np.testing.assert_array_equal(table, [[0, 2], [0, 0], [1, 1]])
    assert mutual_information(np.array([[3, 6], [1, 2]])) == 0.0  # independent: exactly zero
    assert mutual_information(np.eye(4, dtype=np.int64)) == pytest.approx(np.log(4))


def test_factor_values_may_be_any_numbers():
    assert mig_score(NOISY, NOISY_FACTORS * -7.5) == pytest.approx(mig_score(NOISY, NOISY_FACTORS))


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


def test_constant_codes_do_not_change_the_score():
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
    with raises("factors"):
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


@pytest.mark.parametrize("case", OTHERS)
def test_modularity_equals_the_reference(case):
    expected = OTHERS[case]["modularity"]["modularity_score"]
    assert modularity_score(*golden(case)) == pytest.approx(expected, abs=1e-8)


def known_by_hand(codes, factors, bins=20):
    """Information by scikit-learn, joint entropies by counting: an independent route to the same tables."""
    binned = discretize(codes, bins).T
    mutual = np.array([[mutual_info_score(factor, code) for factor in factors.T] for code in binned])
    pairs = [[np.unique([code, factor], axis=1, return_counts=True)[1] for factor in factors.T] for code in binned]
    joint = np.array([[-(n / n.sum() * np.log(n / n.sum())).sum() for n in row] for row in pairs])
    return mutual, joint, np.array([mutual_info_score(factor, factor) for factor in factors.T])


@pytest.mark.parametrize("case", ["rotation", "noise_030", "duplicated"])
def test_scores_from_the_codes_side_follow_their_equations(case):
    codes, factors = golden(case)
    mutual, joint, entropy = known_by_hand(codes, factors)
    shares = np.sort(mutual / entropy, axis=1)
    assert mig_sup_score(codes, factors) == pytest.approx((shares[:, -1] - shares[:, -2]).mean())
    gaps = np.sort(mutual, axis=1)[:, -1] - np.sort(mutual, axis=1)[:, -2]
    best = [max([gaps[d] for d in range(len(gaps)) if mutual[d].argmax() == k], default=0) for k in range(5)]
    assert dcimig_score(codes, factors) == pytest.approx(sum(best) / entropy.sum())
    first, second = np.sort(mutual, axis=0)[-1], np.sort(mutual, axis=0)[-2]
    held = joint[mutual.argmax(axis=0), np.arange(5)]
    assert jemmig_score(codes, factors) == pytest.approx(np.mean(1 - (held - first + second) / (entropy + np.log(20))))


def test_jemmig_penalises_other_information_in_the_best_code():
    mixed = np.column_stack([GRID[:, 0] + 4 * GRID[:, 1], GRID[:, 1], GRID[:, 2]])  # code 0 has factors 0 and 1
    assert mig_per_factor(mixed, GRID)[0] == pytest.approx(mig_per_factor(GRID, GRID)[0])
    assert jemmig_score(mixed, GRID) < jemmig_score(GRID, GRID) - 0.05


def test_a_factor_split_over_two_codes():
    factor = np.arange(4).repeat(25)[:, None]
    split = np.column_stack([factor // 2, factor % 2])  # a bit each
    assert mig_score(split, factor) == pytest.approx(0.0, abs=1e-12)
    assert mig_sup_score(split, factor) == pytest.approx(0.5)
    assert dcimig_score(split, factor) == pytest.approx(0.5)
    assert modularity_score(split, factor) == pytest.approx(1.0)


def test_group_mig_follows_its_equation():
    codes, factors = golden("rotation")
    mutual, _, entropy = known_by_hand(codes, factors)
    code_groups, factor_groups = ["a", "a", "b", "b", "b"], ["b", "a", "a", "b", "b"]
    expected = []
    for k, group in enumerate(factor_groups):
        right = [g == group for g in code_groups]
        expected.append((max(mutual[right, k]) - max(mutual[np.logical_not(right), k])) / entropy[k])
    assert group_mig_score(codes, factors, code_groups, factor_groups) == pytest.approx(np.mean(expected))


def test_a_factor_without_a_group_is_left_out():
    factors = np.array([[0, 0, 0], [0, 1, 1], [1, 0, 1], [1, 1, 0]])
    assert group_mig_score(factors[:, :2], factors, ["a", "b"], ["a", "b", None]) == pytest.approx(1.0)
    assert group_mig_score(factors[:, :2], factors, ["a", "b"], ["a", "b", "b"]) == pytest.approx(2 / 3)
    with raises("factor_groups", value=[None, None, None]):
        group_mig_score(factors, factors, ["a", "b", "b"], [None, None, None])


def test_groups_are_checked_and_an_empty_one_has_no_information():
    assert group_mig_score(GRID, GRID, [0, 0, 0], [0, 0, 0]) == pytest.approx(1.0)
    assert group_mig_score(GRID, GRID, [0, 0, 0], [1, 1, 1]) == pytest.approx(-1.0)
    with raises("code_groups", value="2 labels", accepted="a list of 3 labels"):
        group_mig_score(GRID, GRID, [0, 1], [0, 0, 0])
    with raises("factor_groups"):
        group_mig_score(GRID, GRID, [0, 1, 1], "abc")


def test_continuous_factors_are_binned_like_codes():
    values = np.random.default_rng(0).uniform(size=(4000, 2))
    assert mig_score(values, values) == pytest.approx(1.0, abs=0.02)
    np.testing.assert_allclose(entropies(values), np.log(20), rtol=0.01)


def test_missing_values_leave_their_row_out_for_that_factor_only():
    factors = NOISY_FACTORS.astype(float)
    factors[:300, 0] = np.nan
    gaps = mig_per_factor(NOISY, factors)
    np.testing.assert_allclose(gaps[1:], mig_per_factor(NOISY, NOISY_FACTORS)[1:])
    mutual = mutual_information_matrix(NOISY, factors)
    np.testing.assert_allclose(mutual[:, 1:], mutual_information_matrix(NOISY, NOISY_FACTORS)[:, 1:])
    binned = discretize(NOISY)[300:]
    expected = [mutual_info_score(NOISY_FACTORS[300:, 0], code) for code in binned.T]
    np.testing.assert_allclose(mutual[:, 0], expected)


def test_weights_and_devices_do_not_change_counts():
    factors = NOISY_FACTORS.astype(float)
    factors[5:20, 1] = np.nan
    table = read_table(NOISY, factors)
    binned = bin_table(table)
    once = count_binned(binned)
    assert once.factors == (0, 1, 2)
    twice = count_binned(binned, np.full(len(NOISY), 2.0))
    for one, two in zip(once.tables, twice.tables, strict=True):
        np.testing.assert_array_equal(2 * one, two)
    for device in ("cpu", "cuda") if torch.cuda.is_available() else ("cpu",):
        for one, other in zip(once.tables, count_table(table, device=device).tables, strict=True):
            np.testing.assert_array_equal(one, other)
    doubled = information_from_counts(twice).mutual
    np.testing.assert_allclose(doubled, information_from_counts(once).mutual, atol=1e-12)


def test_mig_by_neighbours_is_near_mig_by_bins():
    assert mig_score(NOISY, NOISY_FACTORS, estimator="knn") == pytest.approx(mig_score(NOISY, NOISY_FACTORS), abs=0.05)
    with raises("estimator", value="kde", accepted=["histogram", "knn"]):
        mig_score(NOISY, NOISY_FACTORS, estimator="kde")


def test_unknown_device():
    with raises("device", value="warp"):
        mig_score(NOISY, NOISY_FACTORS, device="warp")


def test_bins_must_be_positive():
    with raises("bins", value=0):
        mig_score(NOISY, NOISY_FACTORS, bins=0)


def test_docstring_examples():
    result = doctest.testmod(information)
    assert result.attempted > 0 and result.failed == 0
