"""Run folders written by earlier versions load, resume and report."""

import json
import tarfile
from pathlib import Path

import numpy as np
import pytest
import torch

import unweave as uw
from unweave.config import RunConfig, read_config
from unweave.config.migrate import migrate
from unweave.config.optimizers import resolve_optimizers
from unweave.errors import UserNotice
from unweave.methods import METHODS
from unweave.model import checkpoint_step
from unweave.report import report
from unweave.runs import RunFolder

TESTS = Path(__file__).parents[1]
EXPECTED = json.loads((TESTS / "golden" / "old_runs.json").read_text())  # written by the version of the runs
RUNS = {"single": "single", "sweep": "sweep/aae-rooms-seed1", "two_stages": "two_stages"}


@pytest.fixture(params=RUNS)
def old(request, tmp_path):
    """Folder of a run of format 1: a finished single run, an interrupted one of a sweep, one in its second stage."""
    with tarfile.open(TESTS / "fixtures" / "old_runs" / f"{request.param}.tar.xz") as archive:
        archive.extractall(tmp_path, filter="data")
    return tmp_path / RUNS[request.param]


@pytest.fixture
def expected(request, old):
    return EXPECTED[request.node.callspec.params["old"]]


def resume(run):
    """Resume a run that stores no digests, which is said in one line."""
    with pytest.warns(UserNotice) as notices:
        resumed = uw.resume(run)
    assert ["no digests" in str(notice.message) for notice in notices] == [True]
    return resumed


def test_the_configuration_is_migrated(old):
    stored = RunFolder.open(old).read_json("config.json")
    config = read_config(RunFolder.open(old))
    assert "format" not in stored and config.to_json()["format"] == 2
    for same in ("method", "steps", "batch", "seed", "data", "supervision", "precision"):
        assert getattr(config, same) == stored[same], same
    assert config.init == stored["start"] and config.validate_every == stored["checkpoint_every"]
    assert RunConfig.from_json(config.to_json()) == config
    rates = resolve_optimizers(METHODS[config.method], config.lr, config.clip, config.optimizer)
    assert rates == config.optimizers  # so the command repeats the run
    assert " ".join(config.command()).startswith(f"unweave train {config.method} ")


def test_it_encodes_and_resumes_as_its_own_version_did(old, expected):
    before = uw.load(old)
    images, log = before.data.images(torch.arange(4)), before.folder.logs()
    np.testing.assert_allclose(before.encode(images), expected["codes"], atol=2e-5)
    run = resume(old)
    assert checkpoint_step(run.folder) == run.config.steps
    assert run.folder.logs()[: len(log)] == log
    assert run.folder.logs()[-1] == pytest.approx(expected["last_record"], rel=1e-4, abs=0.02)
    np.testing.assert_allclose(run.encode(images), expected["codes_resumed"], atol=2e-5)
    assert (uw.load(old).encode(images) == run.encode(images)).all()


def test_it_is_evaluated_compared_and_reported(old, expected, tmp_path):
    run = resume(old)
    assert uw.evaluate(run, metrics=["mig", "irs"], num_samples=1000).scores == pytest.approx(
        expected["scores"], abs=0.005
    )
    frame = uw.score_runs([old, run], metrics=["mig"], num_samples=1000)
    assert frame["mig"].nunique() == 1 and frame["method"].unique() == [run.config.method]
    assert report([old], tmp_path / "report.html").stat().st_size > 10_000


def test_a_resumed_run_ends_like_the_same_run_trained_now(old, tmp_path):
    config = read_config(RunFolder.open(old))
    resumed = resume(old)
    settings = {**config.hyper, **config.arguments}
    options = {"steps": config.steps, "batch": config.batch, "seed": config.seed, "lr": config.lr, "init": config.init}
    options |= {"clip": config.clip, "log_every": config.log_every, "supervision": config.supervision, "device": "cpu"}
    again = uw.train(config.method, config.data_text(), out=tmp_path / "again", **options, **settings)
    # The fixtures were written on another CPU, whose rounding differs: the weights are not equal.
    assert resumed.folder.logs()[-1] == pytest.approx(again.folder.logs()[-1], rel=1e-3, abs=0.05)


def test_the_option_kinds_of_user_data_is_renamed(old):
    stored = RunFolder.open(old).read_json("config.json")
    kinds = {"angle": "discrete"}
    assert migrate({**stored, "data_options": {"kinds": kinds}})["data_options"] == {"factor_types": kinds}
    part = {"data": f"folder(path='p', kinds={kinds})"}
    renamed = {"data": f"folder(path='p', factor_types={kinds})"}
    assert migrate({**stored, "data_options": part})["data_options"] == renamed


@pytest.mark.parametrize("lr", [None, 3e-4, "x0.5", "x linear(1, 0.01, 300)"])
@pytest.mark.parametrize("optimizer", ["adam", "sgd"])
def test_the_optimizer_options_are_derived_from_the_settings_of_the_players(lr, optimizer):
    cls = METHODS["aae_semi"]
    old = {"method": "aae_semi", "arguments": {}, "hyper": {}, "data_options": {}, "checkpoint_every": 9}
    config = migrate({**old, "optimizer": resolve_optimizers(cls, lr, 2.0, optimizer)})
    assert resolve_optimizers(cls, config["lr"], config["clip"], config["optimizer"]) == config["optimizers"]


def test_runs_on_arrays_keep_the_rules_of_their_layout():
    view = {"data": "split(data=\"arrays(path='a.npy', size=8)\")", "part": "train"}
    for name, options, expected in (
        ("arrays", {"path": "a.npy"}, {"path": "a.npy", "rules": 1}),
        ("arrays", {"path": "a.npy", "rules": 2}, {"path": "a.npy", "rules": 2}),
        ("arrays", {}, {}),  # in memory
        ("folder", {"path": "photos"}, {"path": "photos"}),
        ("split", view, view | {"data": "split(data=\"arrays(rules=1, path='a.npy', size=8)\")"}),
    ):
        stored = {"format": 2, "data": name, "data_options": options}
        assert migrate(stored)["data_options"] == expected
