"""DCI: against stored reference values, and known answers."""

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from raises import raises

from unweave.metrics.dci import concentration, dci_scores, importance_matrix, normalised_entropy
from unweave.metrics.solvers.predictors import PREDICTORS

STORED = Path(__file__).parents[1] / "golden"
CASES = json.loads((STORED / "predictors.json").read_text())["cases"]
FACTORS = np.stack(np.unravel_index(np.arange(60), (4, 3, 5)), axis=1).repeat(6, axis=0)
CODES = FACTORS + np.random.default_rng(1).normal(scale=0.3, size=(360, 3))
NAMES = {"disentanglement", "completeness", "informativeness"}


def golden(case):
    with np.load(STORED / "metrics.npz") as train, np.load(STORED / "predictors.npz") as test:
        return *(train[f"{case}/{name}"] for name in ("codes", "factors")), (
            test[f"{case}/codes"], test[f"{case}/factors"],
        )  # fmt: skip


# The full reference is 4,100 trees on 10,000 rows: some seconds for each of the two most informative cases.
@pytest.mark.parametrize("case", ["rotation", "noise_030"])
def test_scores_and_importances_are_the_reference_s(case):
    codes, factors, test = golden(case)
    ours = dci_scores(codes, factors, test=test)
    assert set(ours) == NAMES
    for name, key in [("disentanglement",) * 2, ("completeness",) * 2, ("informativeness", "informativeness_test")]:
        assert ours[name] == pytest.approx(CASES[case]["dci"][key]["mean"], abs=0.01), name


@pytest.mark.parametrize("case", ["identity", "duplicated"])
def test_scores_of_exact_codes_need_few_rows(case):
    codes, factors, (test_codes, test_factors) = golden(case)
    ours = dci_scores(codes[:1500], factors[:1500], test=(test_codes[:500], test_factors[:500]))
    expected = CASES[case]["dci"]
    assert ours["disentanglement"] == pytest.approx(1.0, abs=1e-3)
    assert ours["completeness"] == pytest.approx(expected["completeness"]["mean"], abs=0.01)
    assert ours["informativeness"] == 1.0


def test_importances_are_the_reference_s():
    codes, factors, test = golden("noise_030")
    expected = np.array(CASES["noise_030"]["dci"]["importance_matrix"])
    ours = importance_matrix(codes, factors[:, [0, 2]], test=(test[0], test[1][:, [0, 2]]))
    np.testing.assert_allclose(ours, expected[:, [0, 2]], atol=0.01)
    np.testing.assert_allclose(ours.sum(axis=0), 1.0)


@pytest.mark.parametrize("predictor", PREDICTORS)
def test_perfect_and_permuted_codes(predictor):
    codes = FACTORS[:, [2, 0, 1]] - FACTORS[:, [2, 0, 1]].mean(axis=0)
    ours = dci_scores(codes, FACTORS, predictor=predictor)
    least = 0.85 if predictor.startswith("logistic") else 0.99  # a linear classifier also leans on chance in 240 rows
    assert all(value > least for value in ours.values())
    assert importance_matrix(codes, FACTORS, predictor=predictor).argmax(axis=0).tolist() == [1, 2, 0]


@pytest.mark.parametrize("predictor", PREDICTORS)
@pytest.mark.parametrize("codes", [np.full_like(CODES, 0.3), CODES[:, :1], np.hstack([CODES, CODES])])
def test_dead_single_and_duplicated_codes_are_in_range(predictor, codes):
    ours = dci_scores(codes, FACTORS, predictor=predictor)
    assert all(type(value) is float and 0 <= value <= 1 for value in ours.values())


def test_constant_codes_score_zero():
    ours = dci_scores(np.zeros((360, 2)), FACTORS)
    assert (ours["disentanglement"], ours["completeness"]) == (0.0, 0.0)
    assert 0.1 < ours["informativeness"] < 0.4  # the most frequent value
    assert importance_matrix(np.zeros((360, 2)), FACTORS).sum() == 0.0


def test_one_factor_and_one_code():
    only_factor, only_code = dci_scores(CODES, FACTORS[:, :1]), dci_scores(CODES[:, :1], FACTORS)
    assert only_factor["disentanglement"] == 1.0  # no code can be used for another one
    assert only_code["completeness"] == 1.0  # no factor can use another one


def test_continuous_factors_are_measured_by_the_variance_explained():
    factors = np.random.default_rng(0).uniform(size=(400, 2))
    ours = dci_scores(factors + 0.01, factors)
    assert all(value > 0.97 for value in ours.values())
    noise = dci_scores(np.random.default_rng(1).normal(size=(400, 2)), factors)
    assert noise["informativeness"] < 0.05 and noise["disentanglement"] < 0.1


def test_missing_values_are_left_out():
    factors = FACTORS.astype(float)
    factors[::3, 0] = np.nan
    whole, part = importance_matrix(CODES, FACTORS), importance_matrix(CODES, factors)
    np.testing.assert_allclose(part, whole, atol=0.12)
    nowhere_tested = dci_scores(CODES, factors, test=(CODES[::3], factors[::3]))
    assert nowhere_tested["informativeness"] > 0.5


def test_a_factor_with_one_value_has_no_importances():
    more = np.column_stack([FACTORS, np.full(360, 7)])
    assert importance_matrix(CODES, more)[:, 3].sum() == 0.0
    assert dci_scores(CODES, more) == dci_scores(CODES, FACTORS)


def test_evenness_and_concentration_by_hand():
    np.testing.assert_allclose(normalised_entropy(np.array([[1.0, 0.0], [0.5, 0.5], [0.0, 0.0]])), [0, 1, 1], atol=1e-8)
    assert concentration(np.array([[3.0, 0.0], [0.5, 0.5], [0.0, 0.0]])) == pytest.approx(0.75, abs=1e-8)
    assert concentration(np.zeros((2, 2))) == 0.0


def test_the_split_is_decided_by_the_seed_and_tensors_are_accepted():
    ours = dci_scores(CODES, FACTORS, seed=3)
    assert dci_scores(torch.tensor(CODES), torch.tensor(FACTORS), seed=3) == ours
    assert dci_scores(CODES, FACTORS, seed=4) != ours


def test_a_large_table_is_split_into_the_field_s_numbers(monkeypatch):
    seen = []
    monkeypatch.setattr(
        "unweave.metrics.solvers.predictors.boost", lambda a, t, b, **_: seen.append((len(a), len(b))) or 1 / 0
    )
    with pytest.raises(ZeroDivisionError):
        dci_scores(np.zeros((40_000, 2)), (np.arange(40_000) % 3)[:, None])
    assert seen == [(10_000, 5_000)]


def test_unknown_predictor_and_device():
    with raises("predictor", value="tree", accepted=["gbt", "forest", "lasso", "logistic"]):
        dci_scores(CODES, FACTORS, predictor="tree")
    with raises("device", value="tpux"):
        dci_scores(CODES, FACTORS, device="tpux")
