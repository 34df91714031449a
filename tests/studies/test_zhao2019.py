"""The InfoVAE study: its runs and their scores."""

import functools
import math

from unweave.evaluation.prior_match import fit_classifier
from unweave.studies import STUDIES, zhao2019
from unweave.studies.study import base_name
from unweave.studies.work import score_study, select_runs, train_study

STUDY = STUDIES["zhao2019"]


def test_all_methods_have_equal_settings():
    full, quick = (STUDY.runs(scale) for scale in ("full", "quick"))
    assert len(full) == 75 and len(quick) == 10
    assert {base_name(run["data"]) for run in full} == {"sprites", "mnist"}
    assert {base_name(run["data"]) for run in quick} == {"digits"}
    for runs in (full, quick):
        methods = {(run["method"], run.get("divergence")) for run in runs}
        assert methods == {
            ("vae", None),
            ("aae", None),
            *(("info_vae", name) for name in ("mmd", "stein", "adversarial")),
        }
        shared = [(run["data"], run["steps"], run["batch"], run.get("net"), run.get("lr")) for run in runs]
        assert len(set(shared)) == len({run["data"] for run in runs})


def test_scores_of_a_run(tmp_path, monkeypatch):
    """All scores of the table are finite."""
    monkeypatch.setattr(zhao2019, "fit_classifier", functools.partial(fit_classifier, steps=60))
    runs = select_runs(STUDY, "quick", only={"method": ["vae"]}, seeds=[0], steps=3, device="cpu")
    frame = score_study(STUDY, "quick", runs, train_study(STUDY, runs, tmp_path), label="3 steps", device="cpu")
    found = frame.iloc[0]
    assert all(math.isfinite(found[name]) for name in STUDY.scores)
    assert 0 <= found["class_kl"] <= math.log(1347 / 120) and 0 <= found["error_1000"] <= found["error_100"] <= 100
    assert found["squared_error"] > 0 and found["mmd_x1000"] < 2000 and found["classifier_error"] < 50
    assert found["row"] == "vae on digits" and 0 < found["nll"] < 256


def test_published_likelihoods_are_compared_with_models_without_a_kl_of_single_codes():
    rows = {STUDY.row(run).name: run for run in STUDY.runs("full")}
    assert {published.score for published in STUDY.published} == {"nll"}
    for published in STUDY.published:
        run = rows[published.row]
        assert base_name(run["data"]) == "mnist" and run.get("alpha", 1) == 1
