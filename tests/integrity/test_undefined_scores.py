"""A score is a finite number, or it is left out with the reason."""

import json

import numpy as np

import unweave as uw
from unweave.metrics import METRICS

FACTORS = np.random.default_rng(0).integers(0, 3, (40, 2))
TINY = np.array([[0, 1e-320, 0], [1e-320, 0, 0]] * 20)  # the variance of these codes underflows


def test_codes_whose_variance_underflows_have_finite_scores():
    """Codes with a spread near the smallest number have no NaN as a score (B-M6)."""
    result = uw.evaluate_arrays(TINY, FACTORS, metrics="all")
    assert "infomec.explicitness" in result.scores
    assert all(np.isfinite(value) for value in result.scores.values()), result.scores


def test_a_score_that_is_not_finite_is_left_out_with_the_reason(monkeypatch, tmp_path):
    """A metric that returns NaN has no score and no interval, and the reason is given, also if it was named (B-M6)."""

    def undefined(codes, factors, **options):
        return {"modularity": float("nan"), "compactness": 0.5, "explicitness": float("inf")}

    monkeypatch.setitem(METRICS, "infomec", METRICS["infomec"]._replace(function=undefined, bootstrap=True))
    codes = np.random.default_rng(1).normal(size=(40, 3))
    for metrics in ("all", ["infomec", "mig"]):
        result = uw.evaluate_arrays(codes, FACTORS, metrics=metrics, resamples=3)
        assert result.scores["infomec.compactness"] == 0.5 and "mig" in result.scores
        assert all(np.isfinite(value) for value in result.scores.values())
        assert set(result.intervals) <= set(result.scores)
        assert "nan" in result.skipped["infomec.modularity"] and "inf" in result.skipped["infomec.explicitness"]


def test_an_undefined_score_that_was_stored_is_not_reported_again(tmp_path):
    """A NaN in the scores.json of an earlier version does not come back with the next evaluation (B-M6)."""
    run = uw.train("beta_vae", "digits(size=16)", net="small", steps=2, batch=8, device="cpu", out=tmp_path / "run")
    uw.evaluate(run, metrics=["mig"])
    path = tmp_path / "run" / "scores.json"
    stored = json.loads(path.read_text())
    stored["scores"]["infomec.explicitness"] = float("nan")
    path.write_text(json.dumps(stored))
    uw.evaluate(run, metrics=["mig"])
    assert all(np.isfinite(value) for value in json.loads(path.read_text())["scores"].values())
