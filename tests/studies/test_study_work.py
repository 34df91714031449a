"""Choosing, training and scoring the runs of a study."""

import json

import pandas as pd
import pytest
from raises import raises
from tiny_study import TINY

from unweave.evaluation import compare
from unweave.studies import work
from unweave.studies.work import folder_name, group_into_cohorts, score_study, select_runs, train_study


def names(**options):
    return [folder_name(TINY, run) for run in select_runs(TINY, "full", **options)]


def test_select_runs():
    assert len(names()) == 6
    assert names(only={"method": ["vae"]}) == ["vae-rooms-seed0", "vae-rooms-seed1"]
    assert names(only={"beta": ["4.0"]}) == ["beta_vae-rooms-beta4-seed0", "beta_vae-rooms-beta4-seed1"]
    assert names(only={"data": ["rooms"], "beta": ["1", "4"], "seed": ["1"]}) == [
        "beta_vae-rooms-beta1-seed1",
        "beta_vae-rooms-beta4-seed1",
    ]
    assert names(only={"method": ["vae"]}, seeds=[7, 9]) == ["vae-rooms-seed7", "vae-rooms-seed9"]
    assert all(
        run["steps"] == 9 and "precision" not in run for run in select_runs(TINY, "quick", steps=9, precision=None)
    )


@pytest.mark.parametrize(
    ("scale", "only", "argument", "value"),
    [
        ("fast", {}, "scale", "fast"),
        ("full", {"colour": ["red"]}, "only", "colour"),
        ("full", {"beta": ["5"]}, "only", "beta=5"),
        ("full", {"method": ["vae"], "beta": ["1"]}, "only", "beta"),
    ],
)
def test_an_empty_selection_raises(scale, only, argument, value):
    with raises(argument, value=value):
        select_runs(TINY, scale, only=only)


def test_runs_that_differ_only_in_seed_and_hyperparameters_form_one_cohort():
    runs = select_runs(TINY, "full")
    assert [len(cohort) for cohort in group_into_cohorts(runs)] == [2, 4]
    assert len(group_into_cohorts([*runs, {**runs[-1], "latents": 5}])) == 3


def score(runs, done):
    return score_study(TINY, "quick", runs, done, label="quick", device="cpu")


def test_runs_are_trained_once_timed_and_scored(tmp_path, monkeypatch):
    runs = select_runs(TINY, "quick", device="cpu")
    seen = []
    done = train_study(TINY, runs, tmp_path, observe=seen.append)
    assert all(result.folder.finished for result in done)
    assert seen[-1].runs == 3 and seen[-1].finished == 3 and seen[-1].done == seen[-1].total == 9
    frame = score(runs, done)
    assert list(frame["run"]) == ["vae-rooms-seed0", "beta_vae-rooms-beta1-seed0", "beta_vae-rooms-beta4-seed0"]
    assert list(frame["row"]) == ["vae on rooms", "beta_vae on rooms, beta=1", "beta_vae on rooms, beta=4"]
    assert frame["mig"].notna().all() and frame["diverged"].isna().all()
    assert (frame["seconds_per_model"] > 0).all() and list(frame["models"]) == [1, 2, 2]
    assert (frame["fleet_seconds"] > 0).all() and set(frame["device"]) == {"cpu"}
    assert "net=small" in frame["settings"][0] and frame["steps"].tolist() == [3, 3, 3]

    def refuse(*_, **__):
        raise AssertionError("trained or scored again")

    before = {p: p.stat().st_mtime_ns for p in tmp_path.rglob("*.safetensors")}
    monkeypatch.setattr(compare, "evaluate", refuse)
    again = score(runs, train_study(TINY, runs, tmp_path))
    assert {p: p.stat().st_mtime_ns for p in tmp_path.rglob("*.safetensors")} == before
    pd.testing.assert_frame_equal(again, frame)


def test_more_seeds_do_not_change_existing_runs(tmp_path):
    first = select_runs(TINY, "quick", device="cpu", only={"beta": ["4"]})
    train_study(TINY, first, tmp_path)
    before = {p: p.read_bytes() for p in tmp_path.rglob("*.*")}
    runs = select_runs(TINY, "quick", device="cpu", only={"beta": ["4"]}, seeds=[0, 1, 2])
    done = train_study(TINY, runs, tmp_path)
    assert [result.folder.path.name for result in done] == [folder_name(TINY, run) for run in runs]
    assert {p: p.read_bytes() for p in before} == before
    assert json.loads((done[2].folder.path / "time.json").read_text())["models"] == 2


def test_stored_scores_of_other_codes_are_not_used(tmp_path):
    runs = select_runs(TINY, "quick", device="cpu", only={"method": ["vae"]})
    done = train_study(TINY, runs, tmp_path)
    frame = score(runs, done)
    stored = done[0].folder.path / "scores.json"
    content = json.loads(stored.read_text())
    stored.write_text(json.dumps({**content, "scores": {**content["scores"], "mig": 0.5}, "codes": "another model"}))
    assert score(runs, done)["mig"][0] == frame["mig"][0] != 0.5
    stored.write_text("rubbish")
    assert score(runs, done)["mig"][0] == frame["mig"][0]


def test_a_time_limit_stops_between_records(tmp_path, monkeypatch):
    runs = select_runs(TINY, "quick", device="cpu")
    now = [0.0]
    monkeypatch.setattr(work.time, "monotonic", lambda: now[0])

    def trained(minutes, seconds_a_record):
        def spend(record):
            now[0] += seconds_a_record

        done = train_study(TINY, runs, tmp_path, minutes=minutes, observe=spend)
        return [result is not None for result in done]

    assert trained(1, 70) == [False, False, False]  # stopped inside the first fleet
    assert (tmp_path / "vae-rooms-seed0" / "config.json").exists()
    assert trained(1, 40) == [True, False, False]  # the first came to its end
    assert trained(10, 40) == [True, True, True]
    assert json.loads((tmp_path / "vae-rooms-seed0" / "time.json").read_text())["seconds"] > 0


def test_a_diverged_run_has_a_row_without_scores(tmp_path):
    runs = select_runs(TINY, "quick", device="cpu", only={"method": ["vae"]}, lr=1e30)
    frame = score(runs, train_study(TINY, runs, tmp_path))
    assert frame["diverged"].notna().all() and "mig" not in frame


def test_scores_of_the_study(tmp_path):
    runs = select_runs(TINY, "quick", device="cpu", only={"method": ["vae"]})
    study = TINY._replace(scores=("mig", "error"), extra=lambda run: {"error": 0.1 * run.representation.latents})
    frame = score_study(study, "full", runs, train_study(study, runs, tmp_path), label="full", device="cpu")
    assert study.metrics("full") == ["mig"] and frame["error"][0] == pytest.approx(0.3)


def test_a_folder_of_other_runs_raises(tmp_path):
    train_study(TINY, select_runs(TINY, "quick", device="cpu", only={"method": ["vae"]}), tmp_path)
    with raises("steps", value=4, accepted="3"):
        train_study(TINY, select_runs(TINY, "quick", device="cpu", steps=4, only={"method": ["vae"]}), tmp_path)
