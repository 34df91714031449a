"""Extending runs, starting from the weights of another run, and when checkpoints are written."""

import json

import pytest
import torch
from raises import raises

import unweave as uw
from unweave.runs import RunFolder
from unweave.training.sweep import resume_all

OPTIONS = {"net": "small", "latents": 2, "batch": 4, "log_every": 2, "device": "cpu"}


def train(out, steps, method="vae", **options):
    return uw.train(method, "digits(size=8)", out=out, steps=steps, **{**OPTIONS, **options})


def weights(run):
    return {name: tensor.tolist() for name, tensor in run.method.state_dict().items()}


def test_a_run_that_kept_its_state_can_be_extended(tmp_path):
    whole = train(tmp_path / "whole", 8)
    train(tmp_path / "run", 4, keep_state=True)
    extended = uw.resume(tmp_path / "run", steps=8)
    assert extended.config.steps == 8 and weights(extended) == weights(whole)
    assert extended.folder.logs() == whole.folder.logs()


def test_the_optimizer_state_is_dropped_unless_it_is_kept(tmp_path):
    run = train(tmp_path / "run", 4)
    assert not (run.folder.path / "checkpoint.safetensors").exists()
    before = {path: path.read_bytes() for path in run.folder.path.iterdir()}
    with raises("steps", value=8):
        uw.resume(run.folder.path, steps=8)
    assert {path: path.read_bytes() for path in run.folder.path.iterdir()} == before


def test_no_run_of_a_sweep_is_changed_if_one_cannot_be_extended(tmp_path):
    train(tmp_path / "a", 4, keep_state=True)
    train(tmp_path / "b", 4)
    before = {path: path.read_bytes() for path in tmp_path.glob("*/*")}
    with raises("steps", value=8):
        resume_all([tmp_path / "a", tmp_path / "b"], steps=8)
    assert {path: path.read_bytes() for path in tmp_path.glob("*/*")} == before


def test_a_run_cannot_be_shortened_and_stages_have_a_fixed_length(tmp_path):
    train(tmp_path / "run", 4, keep_state=True)
    with raises("steps", value=2):
        uw.resume(tmp_path / "run", steps=2)
    train(tmp_path / "m1", 2, "m1", keep_state=True, supervision="labels(n=20)")
    with raises("steps", value=4):
        uw.resume(tmp_path / "m1", steps=4)


def test_init_from_starts_with_the_weights_of_a_run(tmp_path):
    first = train(tmp_path / "first", 4)
    second = train(tmp_path / "second", 1, "beta_vae", init_from=tmp_path / "first", lr=0.0)
    assert weights(second) == weights(first)
    assert second.config.init_from == str(tmp_path / "first")
    for value in ("", str(tmp_path), 5):
        with raises("init_from", value=str(value)):
            train(tmp_path / "third", 1, init_from=value)
    with raises("init_from"):
        train(tmp_path / "third", 1, init_from=tmp_path / "first", latents=3)
    assert not (tmp_path / "third").exists()


@pytest.mark.parametrize(
    ("every", "steps"), [(2, ["2", "4", "6"]), ("0s", ["1", "2", "3", "4", "5", "6"]), ("30s", ["6"])]
)
def test_checkpoints_do_not_change_the_log(tmp_path, monkeypatch, every, steps):
    saved, save = [], RunFolder.save
    plain = train(tmp_path / "plain", 6, log_every=4, keep_state=True)

    def note(folder, name, tensors, **about):
        if name == "checkpoint.safetensors":
            saved.append(str(int(tensors["step"])))
        save(folder, name, tensors, **about)

    monkeypatch.setattr(RunFolder, "save", note)
    run = train(tmp_path / "run", 6, log_every=4, keep_state=True, checkpoint_every=every)
    assert saved == steps
    assert run.folder.logs() == plain.folder.logs() and weights(run) == weights(plain)


def test_sweeps_write_checkpoints_too(tmp_path, monkeypatch):
    saved, save = [], RunFolder.save
    monkeypatch.setattr(
        RunFolder, "save", lambda folder, name, *a, **b: (saved.append(name), save(folder, name, *a, **b))
    )
    runs = [{"method": "vae", "data": "digits(size=8)", **OPTIONS, "steps": 4, "seed": s} for s in (0, 1)]
    uw.fit([{**run, "checkpoint_every": 2} for run in runs], out=tmp_path)
    assert saved == ["checkpoint.safetensors"] * 2 + ["weights.safetensors"] * 2


def test_validation_has_its_own_interval(tmp_path):
    options = {"supervision": "labels(n=20)", "validate_every": 3, "checkpoint_every": 2}
    run = train(tmp_path / "run", 6, "m2", **options)
    assert [r["step"] for r in run.folder.logs() if "unlabelled_accuracy" in r] == [3, 6]


OLD_NAMES = {"discriminator_width": "critic_width", "discriminator_depth": "critic_depth", "batch_norm": "normed"}


def test_old_names_of_settings_and_options_are_accepted(tmp_path):
    values = {"discriminator_width": 8, "discriminator_depth": 1, "batch_norm": False}
    new = train(tmp_path / "new", 1, "aae", init="normal(0.1)", **values)
    old = {OLD_NAMES[name]: value for name, value in values.items()}
    same = train(tmp_path / "old", 1, "aae", start="normal(0.1)", **old)
    assert new.config.replace(created="") == same.config.replace(created="") and weights(new) == weights(same)
    assert not {*OLD_NAMES.values(), "start"} & set(json.dumps(same.config.to_json()).split('"'))
    assert torch.equal(next(uw.load(tmp_path / "old").method.parameters()), next(same.method.parameters()))
