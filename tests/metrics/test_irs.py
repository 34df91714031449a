"""IRS: against stored reference values, an independent computation, and known answers."""

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from raises import raises

from unweave.metrics.inputs import classes, read_table
from unweave.metrics.irs import irs_score, robustness, spread, spread_on_device

STORED = Path(__file__).parents[1] / "golden"
CASES = json.loads((STORED / "information.json").read_text())["cases"]
FACTORS = np.stack(np.unravel_index(np.arange(60), (4, 3, 5)), axis=1).repeat(10, axis=0)
CODES = FACTORS + np.random.default_rng(1).normal(scale=0.5, size=(600, 3))


@pytest.mark.parametrize("case", CASES)
def test_score_equals_the_reference(case):
    with np.load(STORED / "metrics.npz") as arrays:
        codes, factors = arrays[f"{case}/codes"], arrays[f"{case}/factors"]
    expected = CASES[case]["irs"]
    assert irs_score(codes, factors) == pytest.approx(expected["IRS"], abs=1e-8)
    assert irs_score(codes, factors, quantile=1.0) == pytest.approx(expected["IRS_quantile_1.0"], abs=1e-8)
    found = robustness(read_table(codes, factors))
    np.testing.assert_allclose(found.matrix, expected["IRS_matrix"], atol=1e-8)
    np.testing.assert_allclose(found.deviations, expected["max_deviations"], atol=1e-8)


def test_by_hand():
    codes, factors = np.array([[0.0], [1.0], [4.0], [7.0]]), np.array([[0], [0], [1], [1]])
    # within the values 0.5 and 1.5 from the mean, 4 from the mean of all at most
    assert irs_score(codes, factors, quantile=1.0) == pytest.approx(1 - (0.5 + 1.5) / 2 / 4)


def test_factors_of_many_values_are_binned_as_in_disentanglement_lib():
    factors = np.random.default_rng(0).integers(40, size=(2000, 1))
    codes = factors + np.random.default_rng(1).normal(scale=3.0, size=(2000, 1))
    halves = np.digitize(factors, np.histogram(factors, 20)[1][:-1])
    assert irs_score(codes, factors) == irs_score(codes, halves)
    assert irs_score(codes, factors, factor_bins=None) != irs_score(codes, factors)


def test_perfect_permuted_rotated_and_random_codes():
    assert irs_score(FACTORS, FACTORS) == pytest.approx(1.0)
    assert irs_score(-3.0 * FACTORS[:, [2, 0, 1]], FACTORS) == pytest.approx(1.0)
    turn = np.linalg.qr(np.random.default_rng(0).normal(size=(3, 3)))[0]
    assert irs_score(FACTORS @ turn, FACTORS) < 0.8
    assert irs_score(np.random.default_rng(0).normal(size=(600, 3)), FACTORS) < 0.4


@pytest.mark.parametrize("constant", [0.0, 0.1, -1e30])
def test_constant_codes_do_not_count(constant):
    dead = np.full((600, 2), constant)
    assert irs_score(dead, FACTORS) == 0.0
    assert irs_score(np.hstack([dead, CODES]), FACTORS) == irs_score(CODES, FACTORS)


def test_a_large_table_is_read_in_parts(monkeypatch):
    whole = irs_score(CODES, FACTORS)
    monkeypatch.setattr("unweave.metrics.irs.GATHERED", 1)
    assert irs_score(CODES, FACTORS) == pytest.approx(whole, abs=1e-12)


def test_missing_values_leave_their_row_out_for_that_factor_only():
    factors = FACTORS.astype(float)
    factors[::3, 1] = np.nan
    found, whole = robustness(read_table(CODES, factors)), robustness(read_table(CODES, FACTORS))
    np.testing.assert_array_equal(found.matrix[:, [0, 2]], whole.matrix[:, [0, 2]])
    assert not np.allclose(found.matrix[:, 1], whole.matrix[:, 1])


@pytest.mark.parametrize(("option", "value"), [("quantile", 1.5), ("quantile", -0.1), ("factor_bins", 0)])
def test_options_out_of_range(option, value):
    with raises(option, value=value):
        irs_score(CODES, FACTORS, **{option: value})


@pytest.mark.parametrize("quantile", [0.0, 0.5, 0.99, 1.0])
def test_spread_does_not_depend_on_the_device(quantile):
    rng = np.random.default_rng(0)
    factors = rng.integers(0, [3, 40], (500, 2))
    table = read_table(np.column_stack([factors + rng.normal(size=(500, 2)), rng.normal(size=500)]), factors)
    for k in range(2):
        rows, labels = classes(table, k)
        host = spread(table.codes, np.arange(3), rows, labels, quantile)
        device = spread_on_device(torch.from_numpy(table.codes.T.copy()), rows, labels, quantile)
        np.testing.assert_allclose(device, host, rtol=1e-12)
