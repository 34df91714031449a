"""Run folders written by earlier versions load, resume and report."""

import tarfile
from pathlib import Path

import pytest
import torch

import unweave as uw
from unweave.config import RunConfig, read_config
from unweave.config.migrate import migrate
from unweave.model import checkpoint_step
from unweave.report import report
from unweave.runs import RunFolder

FIXTURES = Path(__file__).parent.parent / "fixtures" / "old_runs"
RUNS = {"single": "single", "sweep": "sweep/aae-rooms-seed1", "two_stages": "two_stages"}


@pytest.fixture(params=RUNS)
def old(request, tmp_path):
    """Folder of a run of format 1: a finished single run, an interrupted one of a sweep, one in its second stage."""
    with tarfile.open(FIXTURES / f"{request.param}.tar.xz") as archive:
        archive.extractall(tmp_path, filter="data")
    return tmp_path / RUNS[request.param]


def test_the_configuration_is_migrated(old):
    stored = RunFolder.open(old).read_json("config.json")
    config = read_config(RunFolder.open(old))
    assert "format" not in stored and config.to_json()["format"] == 2
    for same in ("method", "steps", "batch", "seed", "data", "supervision", "precision"):
        assert getattr(config, same) == stored[same], same
    assert config.init == stored["start"] and config.validate_every == stored["checkpoint_every"]
    assert RunConfig.from_json(config.to_json()) == config
    assert " ".join(config.command()).startswith(f"unweave train {config.method} ")


def test_it_loads_resumes_and_reports(old, tmp_path):
    before = uw.load(old)
    images = before.data.images(torch.arange(2))
    assert before.encode(images).shape[0] == 2
    log = before.folder.logs()
    run = uw.resume(old)
    assert checkpoint_step(run.folder) == run.config.steps
    assert run.folder.logs()[: len(log)] == log
    assert (uw.load(old).encode(images) == run.encode(images)).all()
    assert report([old], tmp_path / "report.html").stat().st_size > 10_000


def test_a_resumed_run_ends_like_the_same_run_trained_now(old, tmp_path):
    config = read_config(RunFolder.open(old))
    resumed = uw.resume(old)
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
