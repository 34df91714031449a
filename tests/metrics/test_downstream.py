"""Downstream prediction: against stored reference values, and known answers."""

import json
from pathlib import Path

import numpy as np
import pytest
from raises import raises

from unweave.metrics.downstream import downstream_scores

STORED = Path(__file__).parents[1] / "golden"
CASES = json.loads((STORED / "predictors.json").read_text())["cases"]
FACTORS = np.stack(np.unravel_index(np.arange(60), (4, 3, 5)), axis=1).repeat(10, axis=0)
CODES = FACTORS + np.random.default_rng(1).normal(scale=0.3, size=(600, 3))


@pytest.mark.parametrize(("case", "model"), [("noise_030", "logistic"), ("rotation", "logistic"), ("noise_030", "gbt")])
def test_accuracy_is_that_of_the_reference(case, model):
    with np.load(STORED / "metrics.npz") as train, np.load(STORED / "predictors.npz") as test:
        codes, factors = train[f"{case}/codes"][:1000], train[f"{case}/factors"][:1000]
        held_out = test[f"{case}/codes"], test[f"{case}/factors"]
    expected = CASES[case]["downstream_logistic_cv" if model == "logistic" else "downstream_gbt"]
    ours = downstream_scores(codes, factors, labels=(1000,), model=model, test=held_out)
    assert ours == {"labels_1000": pytest.approx(expected["1000:mean_test_accuracy"], abs=0.01)}


def test_more_labels_predict_better():
    ours = downstream_scores(CODES, FACTORS, labels=(10, 50, 400))
    assert ours["labels_10"] < ours["labels_50"] < ours["labels_400"]


def test_more_labels_than_rows_are_all_rows():
    ours = downstream_scores(CODES, FACTORS, labels=(400, 10_000))
    assert ours["labels_400"] == ours["labels_10000"]  # a third of the 600 rows is tested on


def test_codes_without_information_predict_the_most_frequent_value():
    ours = downstream_scores(np.full((600, 2), 0.1), FACTORS, labels=(1, 300))
    assert ours["labels_300"] == pytest.approx((1 / 4 + 1 / 3 + 1 / 5) / 3, abs=0.06)
    assert ours["labels_1"] == pytest.approx((1 / 4 + 1 / 3 + 1 / 5) / 3, abs=0.06)  # the only value seen


def test_continuous_and_missing_factors():
    factors = np.random.default_rng(0).uniform(size=(400, 2))
    ours = downstream_scores(factors * 3, factors, labels=(100,))
    assert ours["labels_100"] > 0.95
    assert downstream_scores(factors * 3, factors, labels=(1,)) == {"labels_1": 0.0}  # one point is no line
    holes = FACTORS.astype(float)
    holes[::2, 0] = np.nan
    assert 0 < downstream_scores(CODES, holes, labels=(1, 2, 5))["labels_5"] <= 1


def test_options_out_of_range():
    with raises("model", value="tree", accepted=["logistic", "gbt"]):
        downstream_scores(CODES, FACTORS, model="tree")
    with raises("labels", value=0):
        downstream_scores(CODES, FACTORS, labels=(0,))
    with raises("labels", value=()):
        downstream_scores(CODES, FACTORS, labels=())
