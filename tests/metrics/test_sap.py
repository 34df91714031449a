"""SAP: against stored reference values, scikit-learn's SVM, and known answers."""

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from raises import raises
from sklearn.svm import LinearSVC

from unweave.metrics.sap import fit_svms, line_accuracy, one_vs_rest_svms, sap_matrix, sap_score, sort_column

STORED = Path(__file__).parents[1] / "golden"
CASES = json.loads((STORED / "predictors.json").read_text())["cases"]
FACTORS = np.stack(np.unravel_index(np.arange(60), (4, 3, 5)), axis=1).repeat(10, axis=0)
CODES = FACTORS + np.random.default_rng(1).normal(scale=0.3, size=(600, 3))


def golden(case):
    with np.load(STORED / "metrics.npz") as train, np.load(STORED / "predictors.npz") as test:
        codes, factors = train[f"{case}/codes"], train[f"{case}/factors"]
        return codes, factors, (test[f"{case}/codes"], test[f"{case}/factors"])


@pytest.mark.parametrize("case", CASES)
def test_svm_flavour_is_the_reference(case):
    codes, factors, test = golden(case)
    expected = CASES[case]["sap_discrete"]
    np.testing.assert_allclose(sap_matrix(codes, factors, test=test), expected["score_matrix"], atol=5e-4)
    assert sap_score(codes, factors, test=test) == pytest.approx(expected["SAP_score"], abs=1e-3)


@pytest.mark.parametrize("case", CASES)
def test_r2_flavour_is_the_reference(case):
    codes, factors, test = golden(case)
    expected = CASES[case]["sap_continuous"]
    ours = sap_matrix(codes, factors, flavour="r2", test=test)
    np.testing.assert_allclose(ours, expected["score_matrix"], atol=1e-6)
    assert sap_score(codes, factors, flavour="r2", test=test) == pytest.approx(expected["SAP_score"], abs=1e-6)
    measured = sap_score(codes, factors.astype(float), test=test, factor_types="continuous")
    assert measured == pytest.approx(expected["SAP_score"], abs=1e-6)


@pytest.mark.parametrize("scale", [0.01, 1.0, 30.0])
@pytest.mark.parametrize("offset", [0.0, -4.0])
@pytest.mark.parametrize("values", [2, 3, 7])
def test_lines_are_those_of_liblinear(scale, offset, values):
    rng = np.random.default_rng(values)
    labels = rng.integers(values, size=400) * (rng.random(400) < 0.7)  # the first class is the most frequent
    code = scale * (np.cos(labels) + 0.5 * rng.normal(size=400)) + offset
    theirs = LinearSVC(C=0.01, class_weight="balanced", dual=False, tol=1e-10, max_iter=10_000)
    theirs.fit(code[:, None], labels)
    ours = fit_svms(sort_column(code, labels), one_vs_rest_svms(labels))
    np.testing.assert_allclose(ours, np.column_stack([theirs.coef_, theirs.intercept_]), atol=1e-4, rtol=1e-4)
    assert line_accuracy(ours, code, labels) == pytest.approx(theirs.score(code[:, None], labels), abs=0.005)


def test_constant_codes_have_a_line():
    labels = np.arange(50) % 3
    for constant in (0.0, 0.1, -1e30, 1e6):
        line = fit_svms(sort_column(np.full(50, constant), labels), one_vs_rest_svms(labels))
        assert np.isfinite(line).all()


def test_one_code_is_compared_with_a_constant():
    alone = sap_score(CODES[:, :1], FACTORS)
    assert alone == sap_score(np.column_stack([CODES[:, 0], np.zeros(600)]), FACTORS)
    assert sap_score(CODES[:, :1], FACTORS, flavour="r2") == pytest.approx(1 / 3, abs=0.05)


def test_duplicated_and_dead_codes_score_zero():
    assert sap_score(np.hstack([CODES, CODES]), FACTORS) == 0.0
    assert sap_score(np.zeros((600, 4)), FACTORS) == 0.0
    assert sap_score(np.full((600, 4), 0.1), FACTORS, flavour="r2") == 0.0


def test_tiny_codes_score_zero_as_in_the_reference():
    assert sap_score(CODES * 1e-7, FACTORS, flavour="r2") == 0.0


def test_a_value_unknown_to_the_train_rows_is_wrong():
    codes, factors = np.arange(40.0)[:, None] % 4, np.arange(40)[:, None] % 4
    known = codes[:, 0] < 2
    matrix = sap_matrix(codes[known], factors[known], test=(codes, factors))
    assert matrix[0, 0] == 0.5


def test_missing_values_are_left_out():
    factors = FACTORS.astype(float)
    factors[::4, 1] = np.nan
    test = (CODES, factors)
    kept = ~np.isnan(factors[:, 1])
    expected = sap_matrix(CODES[kept], FACTORS[kept], test=(CODES[kept], FACTORS[kept]))[:, 1]
    np.testing.assert_allclose(sap_matrix(CODES, factors, test=test)[:, 1], expected)
    nowhere = factors.copy()
    nowhere[:, 1] = np.nan
    assert np.isfinite(sap_score(CODES, factors, test=(CODES, nowhere)))


def test_a_factor_with_one_value_is_left_out():
    more = np.column_stack([FACTORS, np.full(600, 7)])
    assert np.isnan(sap_matrix(CODES, more)[:, 3]).all()
    assert sap_score(CODES, more) == sap_score(CODES, FACTORS)


def test_the_seed_splits_and_tensors_are_accepted():
    score = sap_score(CODES, FACTORS, seed=2)
    assert type(score) is float and 0 < score < 1
    assert sap_score(torch.tensor(CODES), torch.tensor(FACTORS), seed=2) == score
    assert sap_score(CODES, FACTORS, seed=3) != score


def test_unknown_flavour():
    with raises("flavour", value="tree", accepted=["svm", "r2"]):
        sap_score(CODES, FACTORS, flavour="tree")
