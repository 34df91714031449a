"""A run is what its files say: damaged checkpoints, edited configurations, states that are not finite."""

import json
import shutil
import warnings

import pytest
import torch

import unweave as uw

try:
    from unweave.training.sweep import resume_all
except ImportError:  # before the restructuring
    from unweave.fleet import resume_all

OPTIONS = {"net": "small", "latents": 2, "batch": 4, "log_every": 1, "checkpoint_every": 2, "device": "cpu"}
DATA = "digits(size=8)"
TWO_STAGES = {"supervision": "labels(n=20)"}


def train(out, method="vae", steps=8, **options):
    return uw.train(method, DATA, out=out, steps=steps, **{**OPTIONS, **options})


def interrupted(out, after, method="vae", **options):
    """Train a run that is interrupted after its log record number `after`."""
    records = []

    def stop(progress):
        records.append(progress.step)
        if len(records) == after:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train(out, method, observe=stop, **options)
    return out


def flip_a_bit(path):
    """Change one bit of the values of a tensor."""
    content = bytearray(path.read_bytes())
    content[len(content) * 3 // 4] ^= 8
    path.write_bytes(content)


def weights(run):
    return {name: tensor.tolist() for name, tensor in run.method.state_dict().items()}


def contents(folder):
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file() and path.name != ".lock"}


# --- digests of tensors --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("method", "after", "used", "options"),
    [("vae", 6, "step 4", {}), ("m1_m2", 10, "step 8", TWO_STAGES), ("m1_m2", 13, "step 2 of stage 2", TWO_STAGES)],
    ids=["one-stage", "first-checkpoint-of-the-second-stage", "second-stage"],
)
def test_a_damaged_checkpoint_is_replaced_by_the_one_before(tmp_path, method, after, used, options):
    """(B-C3) The run ends with the weights and the log of a run that was never interrupted."""
    whole = train(tmp_path / "whole", method, **options)
    run = interrupted(tmp_path / "run", after, method, **options)
    flip_a_bit(run / "checkpoint.safetensors")
    with pytest.warns(UserWarning) as notices:
        resumed = uw.resume(run)
    (notice,) = {str(notice.message) for notice in notices}
    assert "checkpoint.safetensors" in notice and used in notice and "\n" not in notice
    assert weights(resumed) == weights(whole) and resumed.folder.logs() == whole.folder.logs()
    assert (run / "weights.safetensors").read_bytes() == (whole.folder.path / "weights.safetensors").read_bytes()
    assert not list(run.glob("*checkpoint*"))


def test_a_run_whose_checkpoints_are_all_damaged_is_not_trained(tmp_path):
    """(B-C3)"""
    run = interrupted(tmp_path / "run", 6)
    for path in run.glob("*checkpoint*"):
        flip_a_bit(path)
    before = contents(run)
    with pytest.raises(uw.UserError, match="damaged"):
        uw.resume(run)
    assert contents(run) == before


def test_a_damaged_checkpoint_is_not_evaluated(tmp_path):
    """(B-C3) An unfinished run has the weights of its last intact checkpoint."""
    run = interrupted(tmp_path / "run", 6)
    shutil.copytree(run, tmp_path / "copy")
    (tmp_path / "copy" / "checkpoint.safetensors").write_bytes((run / "checkpoint.safetensors").read_bytes())
    flip_a_bit(run / "checkpoint.safetensors")
    with pytest.warns(UserWarning, match="step 4"):
        loaded = uw.load(run)
    assert weights(loaded) != weights(uw.load(tmp_path / "copy"))
    assert all(path.exists() for path in run.glob("*checkpoint*"))


@pytest.mark.parametrize("call", [uw.load, uw.resume, uw.evaluate], ids=lambda call: call.__name__)
def test_damaged_weights_are_refused(tmp_path, call):
    """(B-C3)"""
    run = train(tmp_path / "run")
    flip_a_bit(run.folder.path / "weights.safetensors")
    with pytest.raises(uw.UserError, match=r"damaged: weights\.safetensors"):
        call(run.folder.path)


def test_equal_runs_have_equal_files(tmp_path):
    one, two = (train(tmp_path / name, keep_state=True) for name in ("one", "two"))
    for name in ("weights.safetensors", "checkpoint.safetensors"):
        assert (one.folder.path / name).read_bytes() == (two.folder.path / name).read_bytes()
    assert not list(two.folder.path.glob("*previous*"))


# --- configuration -------------------------------------------------------------------------------------------------

EDITS = {
    "seed": {"seed": 1},
    "batch": {"batch": 8},
    "method": {"method": "vae"},
    "beta": {"hyper": {}},
    "latents": {"arguments": {"latents": 3, "net": "small"}},
    "steps": {"steps": 7},
    "steps < 1": {"steps": -5},
    "steps as text": {"steps": "8"},
    "engine": {"engine": "nope"},
    "precision": {"precision": "tf32"},
    "supervision": {"supervision": "labels(n=20)"},
    "size": {"data_options": {"size": 16}},
    "lr": {"optimizer": {"model": {"lr": 0.1}}, "optimizers": {"model": {"lr": 0.1}}},
}


def edit(run, changes):
    """Change entries of config.json; dictionaries are merged with the stored ones, empty ones replace them."""
    stored = json.loads((run / "config.json").read_text())
    for name, value in changes.items():
        if isinstance(value, dict) and value and isinstance(stored.get(name), dict):
            value = {n: {**stored[name].get(n, {}), **v} if isinstance(v, dict) else v for n, v in value.items()}
            value = {**stored[name], **value}
        if name in stored and not (name == "optimizer" and isinstance(stored[name], str)):
            stored[name] = value
    (run / "config.json").write_text(json.dumps(stored))


@pytest.fixture(scope="module")
def stopped(tmp_path_factory):
    return interrupted(tmp_path_factory.mktemp("runs") / "run", 5, "beta_vae", beta=7.0)


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    return train(tmp_path_factory.mktemp("runs") / "run", "beta_vae", beta=7.0).folder.path


@pytest.mark.parametrize("name", EDITS)
def test_a_run_is_not_resumed_with_another_configuration(tmp_path, stopped, name):
    """(B-C5) The error names the field that was changed."""
    run = shutil.copytree(stopped, tmp_path / "run")
    edit(run, EDITS[name])
    before = contents(run)
    with pytest.raises(uw.UserError, match=name.split()[0]) as caught:
        uw.resume(run)
    assert "\n" not in str(caught.value)
    assert contents(run) == before


@pytest.mark.parametrize("name", [name for name in EDITS if name != "engine"])
@pytest.mark.parametrize("call", [uw.load, uw.resume], ids=lambda call: call.__name__)
def test_a_finished_run_is_not_loaded_with_another_configuration(tmp_path, finished, name, call):
    """(B-C5) Tables and reports would show settings with which the model was not trained."""
    run = shutil.copytree(finished, tmp_path / "run")
    edit(run, EDITS[name])
    with pytest.raises(uw.UserError, match=name.split()[0]):
        call(run)


def test_values_are_checked_before_the_first_checkpoint_too(tmp_path):
    """(B-C5) A run that was stopped before its first step."""
    run = interrupted(tmp_path / "run", 1, "beta_vae", checkpoint_every=100)
    for name, value in (("hyper", {"beta": -1.0}), ("hyper", {"gamma": 1.0}), ("supervision", "labels(n=1000000)")):
        copy = shutil.copytree(run, tmp_path / "copy")
        edit(copy, {name: value})
        with pytest.raises(uw.UserError):
            uw.resume(copy)
        shutil.rmtree(copy)
    assert uw.resume(run).config["steps"] == 8


def test_an_interrupted_extension_is_resumed(tmp_path):
    """More steps are not another configuration, whether or not a checkpoint was written since they were stored."""
    whole = train(tmp_path / "whole", steps=12)
    run = train(tmp_path / "run", keep_state=True).folder.path

    def stop_at(step):
        def stop(progress):
            if progress.step >= step:
                raise KeyboardInterrupt

        return stop

    for step in (9, 11):
        with pytest.raises(KeyboardInterrupt):
            uw.resume(run, steps=12, observe=stop_at(step))
        assert uw.load(run).config["steps"] == 12
    resumed = uw.resume(run)
    assert weights(resumed) == weights(whole) and resumed.folder.logs() == whole.folder.logs()


def test_another_version_of_torch_is_reported(tmp_path, monkeypatch):
    """(B-C5) In one line."""
    with monkeypatch.context() as patch:
        patch.setattr(torch, "__version__", "1.2.3")
        run = interrupted(tmp_path / "run", 5)
    with pytest.warns(UserWarning) as notices:
        uw.resume(run)
    (notice,) = {str(notice.message) for notice in notices}
    assert "1.2.3" in notice and torch.__version__ in notice and "\n" not in notice
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        uw.resume(run)  # finished


# --- divergence ----------------------------------------------------------------------------------------------------


def sweep(out, rates, **options):
    runs = [{"method": "vae", "data": DATA, **OPTIONS, **options, "lr": lr, "out": out / str(lr)} for lr in rates]
    return uw.fit(runs, strategy="batched")


def test_a_run_that_explodes_in_its_last_step_is_not_finished(tmp_path):
    """(A16) Its logged quantities are finite: they are those before the last update."""
    done = sweep(tmp_path, [1e-3, 1e30, 2e-3], steps=1)
    assert [isinstance(run, uw.Diverged) for run in done] == [False, True, False]
    assert done[1].step == 1 and not (tmp_path / "1e+30" / "weights.safetensors").exists()
    with pytest.raises(uw.UserError, match="step 1 "):
        train(tmp_path / "alone", steps=1, lr=1e30)


@pytest.mark.parametrize("alone", [True, False], ids=["alone", "in-a-fleet"])
def test_an_exploded_state_does_not_replace_the_last_good_checkpoint(tmp_path, alone):
    """(A16) The learning rate jumps in step 6, in which a checkpoint is written."""
    spike = (1e-3, 1e38, 1e-9, 4.5)
    if alone:
        with pytest.raises(uw.UserError, match="step 6 "):
            train(tmp_path / "run", lr=spike)
        run = tmp_path / "run"
    else:
        done = sweep(tmp_path, [1e-3, spike], steps=8)
        assert done[1].step == 6
        run = done[1].folder.path
    assert all(tensor.abs().max() < 100 for tensor in uw.load(run).method.state_dict().values())


# --- sweeps --------------------------------------------------------------------------------------------------------


def test_a_resumed_sweep_keeps_the_logs_of_earlier_stages(tmp_path):
    """(A1) Its runs were stopped in their second stage."""
    runs = [{"method": "m1_m2", "data": DATA, "steps": 8, **OPTIONS, **TWO_STAGES, "seed": seed} for seed in (0, 1)]
    whole = uw.fit(runs, out=tmp_path / "whole", strategy="batched")

    def stop(progress):
        if any('"stage": 1, "step": 6' in path.read_text() for path in (tmp_path / "cut").glob("*/log.jsonl")):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        uw.fit(runs, out=tmp_path / "cut", strategy="batched", observe=stop)
    resumed = resume_all(sorted((tmp_path / "cut").iterdir()), strategy="batched")
    for ours, theirs in zip(resumed, whole, strict=True):
        assert ours.folder.logs() == theirs.folder.logs() and weights(ours) == weights(theirs)
        assert {record["stage"] for record in ours.folder.logs()} == {0, 1}


def test_a_finished_run_without_its_checkpoint_is_not_trained_again(tmp_path):
    """(A17) Beside an unfinished run of the same sweep."""
    finished = train(tmp_path / "finished", seed=1)
    for path in finished.folder.path.glob("*checkpoint*"):
        path.unlink()
    other = interrupted(tmp_path / "other", 5)
    before = contents(finished.folder.path)
    resumed = resume_all([finished.folder.path, other], strategy="batched")
    assert contents(finished.folder.path) == before
    assert weights(resumed[0]) == weights(finished) and resumed[1].config["seed"] == 0
