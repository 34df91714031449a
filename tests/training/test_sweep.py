"""A fleet of runs is those runs."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time

import pytest
import torch
from raises import raises

import unweave as uw
from unweave.engine.loop import LoopEngine
from unweave.model import Diverged
from unweave.runs import RunFolder
from unweave.training import trainer
from unweave.training.cohort import group_into_cohorts
from unweave.training.prepare import prepare
from unweave.training.sweep import expand, fit

SMALL = {"method": "beta_vae", "data": "rooms(size=8)", "net": "small", "latents": 4, "batch": 8, "device": "cpu"}
QUICK = {**SMALL, "steps": 20, "log_every": 10, "lr": 1e-3}


def weights(path):
    return RunFolder(path).read("weights.safetensors")[0]


def folders(root):
    """Return the run folders of a sweep, beside which its manifest is stored."""
    return sorted(path for path in root.iterdir() if path.is_dir())


def distance(one, other):
    top = sum((one[n].double() - other[n].double()).square().sum() for n in one)
    return float((top / sum(t.double().square().sum() for t in other.values())).sqrt())


def test_a_grid_is_every_combination_with_every_seed():
    runs = expand({"beta": [1, 2], "lr": [1e-3]}, [0, 1])
    assert [(r["beta"], r["lr"], r["seed"]) for r in runs] == [(1, 1e-3, 0), (1, 1e-3, 1), (2, 1e-3, 0), (2, 1e-3, 1)]


@pytest.mark.parametrize("strategy", ["batched", "loop"])
def test_each_run_of_a_fleet_writes_the_folder_of_a_single_run(tmp_path, strategy):
    grid = expand({"beta": [1.0, 8.0]}, [0, 1])
    done = fit([{**QUICK, **run} for run in grid], out=tmp_path / "fleet", strategy=strategy)
    names = [p.name for p in folders(tmp_path / "fleet")]
    assert names == sorted(f"beta_vae-rooms-beta{b}-seed{s}" for b in (1.0, 8.0) for s in (0, 1))
    for run, trained in zip(grid, done, strict=True):
        alone = uw.train(**QUICK, **run, out=tmp_path / f"alone-{strategy}-{run['beta']}-{run['seed']}")
        assert sorted(p.name for p in trained.folder.path.iterdir()) == sorted(
            p.name for p in alone.folder.path.iterdir()
        )
        assert distance(weights(trained.folder.path), weights(alone.folder.path)) < 1e-5
        ours, theirs = (model.config.replace(created="") for model in (trained, alone))
        assert ours == theirs
        for mine, its in zip(trained.folder.logs(), alone.folder.logs(), strict=True):
            assert mine == pytest.approx(its, rel=1e-4, abs=1e-4)


def test_a_fleet_of_one_equals_a_replica_of_a_larger_fleet(tmp_path):
    """Trained by the same strategy, a run does not depend on how many are trained beside it."""
    runs = [{**QUICK, "seed": seed} for seed in range(3)]
    alone = fit(runs[1:2], out=tmp_path / "one", strategy="batched")
    among = fit(runs, out=tmp_path / "three", strategy="batched")
    assert len(alone) == 1 and distance(weights(alone[0].folder.path), weights(among[1].folder.path)) < 1e-6


def test_runs_of_different_shapes_train_in_one_call(tmp_path):
    runs = [{**QUICK, "latents": 3}, {**QUICK, "latents": 5}, {**QUICK, "latents": 5, "seed": 1}]
    done = fit(runs, out=tmp_path, strategy="batched")
    assert [t.representation.latents for t in done] == [3, 5, 5]


def test_sgd_in_a_fleet_equals_sgd_of_single_runs(tmp_path):
    runs = [{**QUICK, "optimizer": "sgd", "lr": 1e-4 * (1 + seed), "seed": seed} for seed in (0, 1)]
    together = fit(runs, out=tmp_path / "two", strategy="batched")
    alone = uw.train(**runs[1], out=tmp_path / "one")
    assert distance(weights(together[1].folder.path), weights(alone.folder.path)) < 1e-5
    adam = uw.train(**{**runs[1], "optimizer": "adam"}, out=tmp_path / "adam")
    assert distance(weights(adam.folder.path), weights(alone.folder.path)) > 1e-3


def test_replicas_stop_at_their_own_steps(tmp_path):
    runs = [{**QUICK, "steps": steps, "seed": steps} for steps in (7, 20, 13)]
    fit(runs, out=tmp_path / "fleet", strategy="batched")
    for run in runs:
        alone = uw.train(**run, out=tmp_path / f"alone{run['steps']}")
        folder = next((tmp_path / "fleet").glob(f"*steps{run['steps']}-*"))
        assert distance(weights(folder), weights(alone.folder.path)) < 1e-5
        assert [r["step"] for r in RunFolder(folder).logs()] == [r["step"] for r in alone.folder.logs()]


def test_no_step_is_computed_past_the_last(tmp_path, monkeypatch):
    """Records are made every 1,000 steps, the runs have 5 and 7."""
    made, run_steps = [], LoopEngine.run_steps

    def record(self, steps, stop=None):
        made.append(run_steps(self, steps, stop))
        return made[-1]

    monkeypatch.setattr(LoopEngine, "run_steps", record)
    fit(
        [{**QUICK, "steps": 5 + 2 * seed, "log_every": 1000, "seed": seed} for seed in (0, 1)],
        out=tmp_path,
        strategy="batched",
    )
    assert sum(made) == 7


def test_a_poisoned_replica_leaves_its_neighbours_untouched(tmp_path):
    rates = [1e-3, 1e-3, 1e-3]
    healthy = fit([{**QUICK, "lr": r, "seed": s} for s, r in enumerate(rates)], out=tmp_path / "a", strategy="batched")
    rates[1] = 1e12
    seen = []
    poisoned = fit(
        [{**QUICK, "lr": r, "seed": s, "out": tmp_path / f"b{s}"} for s, r in enumerate(rates)],
        strategy="batched",
        observe=seen.append,
    )
    assert isinstance(poisoned[1], Diverged) and not poisoned[1].folder.finished
    assert seen[-1].diverged == 1 and seen[-1].finished == 2
    for k in (0, 2):
        ours, theirs = (weights(f[k].folder.path) for f in (poisoned, healthy))
        assert all(torch.equal(ours[n], theirs[n]) for n in theirs)
    state = poisoned[1].folder.read("checkpoint.safetensors")[0]
    assert all(t.isfinite().all() for t in state.values()) and int(state["step"]) == poisoned[1].step


SCRIPT = """
import sys, json
from unweave.training import sweep
runs = [{**run, "checkpoint_every": "0s"} for run in json.loads(sys.argv[1])]
sweep.fit(runs, out=sys.argv[2], strategy="batched", resume=True)
"""


@pytest.mark.parametrize("written", ["checkpoint.safetensors", "time.json"])
def test_a_killed_fleet_ends_in_the_same_weights(tmp_path, written):
    runs = [{**QUICK, "steps": 200, "seed": seed} for seed in range(3)]
    fit(runs, out=tmp_path / "whole", strategy="batched")
    command = [sys.executable, "-c", SCRIPT, json.dumps(runs), str(tmp_path / "killed")]
    process = subprocess.Popen(command)
    while process.poll() is None and not list((tmp_path / "killed").glob(f"*/{written}")):
        time.sleep(0.01)
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert not any(RunFolder(p).finished for p in folders(tmp_path / "killed"))
    before = {p.name: RunFolder(p).training_time.get("seconds", 0.0) for p in folders(tmp_path / "killed")}
    assert written != "time.json" or any(before.values())
    fit(runs, out=tmp_path / "killed", strategy="batched", resume=True)
    for path in folders(tmp_path / "whole"):
        other = tmp_path / "killed" / path.name
        assert (path / "weights.safetensors").read_bytes() == (other / "weights.safetensors").read_bytes()
        assert (path / "log.jsonl").read_text() == (other / "log.jsonl").read_text()
        assert RunFolder(other).training_time["seconds"] > before[path.name]  # of both parts


def test_finished_runs_are_not_trained_again(tmp_path):
    runs = [{**QUICK, "seed": seed} for seed in (0, 1)]
    fit(runs, out=tmp_path)
    before = {p: p.stat().st_mtime_ns for p in tmp_path.glob("*/weights.safetensors")}
    again = fit(runs, out=tmp_path, resume=True)
    assert {p: p.stat().st_mtime_ns for p in tmp_path.glob("*/weights.safetensors")} == before
    assert len(again) == 2


def test_the_time_of_an_interrupted_run_adds_up(tmp_path, monkeypatch):
    now = [0.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])

    def spend(progress, stop):
        now[0] += 10.0
        if stop:
            raise KeyboardInterrupt

    runs = [{**QUICK, "steps": 2, "log_every": 1, "seed": seed} for seed in (0, 1)]
    with pytest.raises(KeyboardInterrupt):
        fit(runs, out=tmp_path, observe=lambda progress: spend(progress, stop=True))
    done = fit(runs, out=tmp_path, resume=True, observe=lambda progress: spend(progress, stop=False))
    assert [run.folder.training_time for run in done] == [{"seconds": 30.0, "models": 2, "device": "cpu"}] * 2
    alone = uw.train(**runs[0], out=tmp_path / "alone", observe=lambda progress: spend(progress, stop=False))
    assert alone.folder.training_time == {"seconds": 20.0, "models": 1, "device": "cpu"}


def test_data_is_on_its_device_before_a_fleet_is_measured(tmp_path, monkeypatch):
    """When runs are resumed, nothing has moved it there yet."""

    def stop(progress):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fit([QUICK], out=tmp_path, observe=stop)
    data, order = uw.load_data("rooms(size=8)"), []
    monkeypatch.setattr(type(data), "to", lambda self, device: order.append("data") or self)
    monkeypatch.setattr(trainer, "split_to_fit", lambda cohort, *_: order.append("split") or [cohort])
    fit([{**QUICK, "data": data}], out=tmp_path, resume=True)
    assert order[:2] == ["data", "split"]


@pytest.mark.parametrize(
    ("runs", "options", "argument"),
    [
        ([], {}, "runs"),
        ([{"data": "rooms(size=8)"}], {}, "method"),
        ([QUICK], {"strategy": "magic"}, "strategy"),
        ([QUICK, QUICK], {}, "out"),
        ([QUICK, {**QUICK, "beta": "much", "seed": 1}], {}, "beta"),
    ],
)
def test_invalid_sweeps_are_refused_before_anything_is_written(tmp_path, runs, options, argument):
    with raises(argument):
        fit(runs, out=tmp_path / "out", **options)
    assert not (tmp_path / "out").exists()


def test_a_folder_with_another_run_is_not_continued(tmp_path):
    fit([QUICK], out=tmp_path)
    with raises("out"):
        fit([QUICK], out=tmp_path)
    with raises("hyper", value={"beta": 3.0}):
        fit([{**QUICK, "beta": 3.0}], out=tmp_path, resume=True)


def test_a_run_whose_config_lacks_an_option_has_its_default(tmp_path):
    (run,) = fit([QUICK], out=tmp_path)
    config = json.loads((run.folder.path / "config.json").read_text())
    assert config.pop("init") == "glorot"
    (run.folder.path / "config.json").write_text(json.dumps(config))
    fit([QUICK], out=tmp_path, resume=True)
    with raises("init", value="normal(0.1)", accepted="'glorot'"):
        fit([{**QUICK, "init": "normal(0.1)"}], out=tmp_path, resume=True)


def test_runs_on_streamed_data_are_trained_one_by_one(tmp_path, monkeypatch):
    data = uw.load_data("rooms(size=8)")
    monkeypatch.setattr(type(data), "resident", False, raising=False)
    runs = [prepare("beta_vae", data, out=tmp_path / str(seed), net="small", seed=seed) for seed in range(2)]
    assert group_into_cohorts(runs) == [[0], [1]]
