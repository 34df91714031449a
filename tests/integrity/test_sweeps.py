"""A sweep that is stopped at any moment is continued with all its runs, and finished runs are not trained again."""

import errno
import json
import os
import runpy
import shutil
import signal
import sys

import numpy as np
import pandas as pd
import pytest

import unweave as uw

SMALL = {"method": "vae", "data": "digits(size=8)", "net": "small", "latents": 2, "batch": 4, "device": "cpu"}
SWEEP = [{**SMALL, "steps": 4, "log_every": 2, "checkpoint_every": 1, "seed": seed} for seed in range(3)]
OPTIONS = "--data digits(size=8) --set net=small --set latents=2 --batch 4 --device cpu --steps 4 --log-every 2"
COMMAND = ["train", "vae", *OPTIONS.split(), "--checkpoint-every", 1, "--seeds", "0-2", "--quiet", "--out"]
NAMES = [f"vae-digits-seed{seed}" for seed in range(3)]


@pytest.fixture
def unweave(capsys, monkeypatch):
    """Return a function that runs a command and returns its exit code and everything that it printed."""

    def run(*words):
        monkeypatch.setattr(sys, "argv", ["unweave", *map(str, words)])
        with pytest.raises(SystemExit) as stop:
            runpy.run_module("unweave", run_name="__main__")
        said = capsys.readouterr()
        return stop.value.code or 0, said.out + said.err

    return run


def weights(root):
    return {path.parent.name: path.read_bytes() for path in root.glob("[!.]*/weights.safetensors")}


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    """The weights of the sweep, trained without an interruption."""
    root = tmp_path_factory.mktemp("undisturbed")
    uw.fit(SWEEP, out=root)
    assert sorted(weights(root)) == NAMES
    return weights(root)


def killed_at(count, root, train):
    """Call `train` in another process and kill it before it makes or renames something below `root` again.

    Return False if the process ended before it had done so `count` times.
    """
    if (child := os.fork()) == 0:
        left = [count]

        def watch(event, args):
            if event in ("os.mkdir", "os.rename") and str(root) in str(args[-3:]):
                left[0] -= 1
                if left[0] < 0:
                    os.kill(os.getpid(), signal.SIGKILL)

        sys.addaudithook(watch)
        try:
            train()
        finally:
            os._exit(0)
    return os.WIFSIGNALED(os.waitpid(child, 0)[1])


@pytest.mark.parametrize("count", [1, 4, 9])
def test_a_killed_sweep_is_resumed_with_all_its_runs(count, tmp_path, undisturbed, unweave):
    """(A2)"""
    root = tmp_path / "sweep"
    assert killed_at(count, root, lambda: uw.fit(SWEEP, out=root))
    if any(not path.name.startswith(".") for path in root.iterdir()):
        code, said = unweave("train", "--resume", root, "--quiet")
        assert code == 0, said
    else:  # the sweep had not begun
        code, said = unweave("train", "--resume", root, "--quiet")
        assert code == 2 and "repeat" in said
        assert unweave(*COMMAND, root)[0] == 0
    assert weights(root) == undisturbed


@pytest.mark.parametrize("count", [0, 3, 6, 14])
def test_the_same_call_resumes_a_killed_sweep(count, tmp_path, undisturbed):
    """(A2)"""
    root = tmp_path / "sweep"
    assert killed_at(count, root, lambda: uw.fit(SWEEP, out=root, resume=True))
    uw.fit(SWEEP, out=root, resume=True)
    assert weights(root) == undisturbed


@pytest.mark.parametrize("error", [KeyboardInterrupt(), OSError(errno.ENOSPC, "No space left on device")])
def test_a_sweep_that_fails_while_its_folders_are_created_is_resumed(
    error, tmp_path, undisturbed, unweave, monkeypatch
):
    """(A2)"""
    root, mkdir = tmp_path / "sweep", os.mkdir

    def fail(path, *rest, **named):
        if NAMES[2] in str(path):
            raise error
        mkdir(path, *rest, **named)

    words = [*COMMAND, root]
    with monkeypatch.context() as patch:
        patch.setattr(os, "mkdir", fail)
        code, said = unweave(*words)
    assert code == (2 if isinstance(error, OSError) else 130) and "Traceback" not in said
    code, said = unweave(*words)
    assert code == 2 and f"--resume {root}" in said  # the folder holds a sweep
    assert unweave("train", "--resume", root, "--quiet")[0] == 0
    assert weights(root) == undisturbed


def test_a_finished_run_without_its_checkpoint_is_not_trained_again(tmp_path, undisturbed):
    """(A2, A17)"""
    uw.fit(SWEEP, out=tmp_path)
    for name in NAMES[:2]:
        (tmp_path / name / "checkpoint.safetensors").unlink(missing_ok=True)
    (tmp_path / NAMES[1] / "weights.safetensors").unlink()
    before = (tmp_path / NAMES[0] / "log.jsonl").read_text()
    uw.fit(SWEEP, out=tmp_path, resume=True)
    assert (tmp_path / NAMES[0] / "log.jsonl").read_text() == before
    assert weights(tmp_path) == undisturbed


# --- the manifest ----------------------------------------------------------------------------------------------------


@pytest.fixture
def stopped(tmp_path):
    """A sweep that was killed before it created its second run."""
    root = tmp_path / "sweep"
    assert killed_at(4, root, lambda: uw.fit(SWEEP, out=root))
    assert (root / NAMES[0]).exists() and not (root / NAMES[1]).exists()
    return root


def files(root):
    return sorted(path for path in root.rglob("*") if not path.name.startswith("."))


def test_a_sweep_of_other_runs_is_refused_by_name(stopped):
    """(A2)"""
    before = files(stopped)
    with pytest.raises(uw.UserError) as refused:
        uw.fit([run for run in SWEEP if run["seed"] != 1], out=stopped, resume=True)
    assert refused.value.argument == "out" and f"'{NAMES[1]}' is not among these runs" in str(refused.value)
    with pytest.raises(uw.UserError) as refused:
        uw.fit(SWEEP[1:2], out=stopped)
    assert "a sweep was stopped there" in str(refused.value)
    assert files(stopped) == before


def test_missing_runs_must_have_the_settings_in_the_manifest(stopped):
    """(A2)"""
    shutil.rmtree(stopped / NAMES[0])
    before = files(stopped)
    with pytest.raises(uw.UserError) as refused:
        uw.fit([{**run, "batch": 8} for run in SWEEP], out=stopped, resume=True)
    assert refused.value.argument == "batch" and NAMES[0] in str(refused.value) and files(stopped) == before


def test_a_sweep_is_extended_by_more_seeds(stopped, undisturbed):
    uw.fit([*SWEEP, {**SWEEP[0], "seed": 7}], out=stopped, resume=True)
    assert weights(stopped).keys() == {*NAMES, "vae-digits-seed7"}
    assert {name: weights(stopped)[name] for name in NAMES} == undisturbed


def test_other_runs_may_use_the_same_folder(tmp_path):
    uw.fit(SWEEP[:1], out=tmp_path)
    uw.fit([{**SWEEP[0], "method": "beta_vae"}], out=tmp_path)
    assert len(uw.resume_all(tmp_path)) == 2


def test_runs_that_were_not_created_are_named(stopped, unweave):
    """(A2)"""
    uw.resume(stopped / NAMES[0])
    code, said = unweave("compare", stopped, "--out", stopped.parent / "c", "--metrics", "mig")
    assert code == 0 and f"'{NAMES[1]}' and 1 other" in said and f"--resume {stopped}" in said


def test_old_sweeps_without_a_manifest_are_resumed(stopped, undisturbed):
    (stopped / "sweep.json").unlink()
    (run,) = uw.resume_all(stopped)
    assert run.folder.path.name == NAMES[0] and weights(stopped) == {NAMES[0]: undisturbed[NAMES[0]]}
    uw.fit(SWEEP, out=stopped, resume=True)
    assert weights(stopped) == undisturbed


def test_missing_runs_have_the_steps_of_an_extended_sweep(stopped):
    uw.resume_all(stopped, steps=6)
    assert {uw.load(stopped / name).config.steps for name in NAMES} == {6}
    assert {run["config"]["steps"] for run in json.loads((stopped / "sweep.json").read_text())["runs"]} == {6}


def test_arrays_in_memory_cannot_be_opened_again(tmp_path):
    """(A2)"""
    data = uw.load_data(np.random.default_rng(0).random((16, 1, 8, 8), dtype=np.float32))
    runs = [{**run, "data": data} for run in SWEEP]
    root = tmp_path / "sweep"
    assert killed_at(4, root, lambda: uw.fit(runs, out=root))
    before = files(root)
    with pytest.raises(uw.UserError) as refused:
        uw.resume_all(root)
    assert "vae-arrays-seed" in str(refused.value) and "resume=True" in str(refused.value) and files(root) == before
    uw.fit(runs, out=root, resume=True)
    assert len(weights(root)) == 3


DAMAGED = ["{", "[]", '{"format": 9, "runs": []}', '{"format": 1, "runs": [{"folder": "../x", "config": {}}]}']


@pytest.mark.parametrize("change", DAMAGED)
def test_a_damaged_manifest_is_one_line(change, stopped, unweave):
    (stopped / "sweep.json").write_text(change)
    code, said = unweave("train", "--resume", stopped, "--quiet")
    assert code == 2 and "sweep.json" in said and len(said.strip().splitlines()) == 1
    assert not (stopped.parent / "x").exists()


def test_an_empty_folder_is_that_of_a_sweep_that_had_not_begun(tmp_path, undisturbed):
    """(A2)"""
    (tmp_path / "sweep" / NAMES[0]).mkdir(parents=True)
    uw.fit(SWEEP, out=tmp_path / "sweep", resume=True)
    assert weights(tmp_path / "sweep") == undisturbed


def test_a_damaged_run_does_not_stop_its_sweep(tmp_path, undisturbed, unweave):
    """(A16)"""
    root = tmp_path / "sweep"
    uw.fit(SWEEP, out=root)
    (root / NAMES[0] / "weights.safetensors").write_bytes(b"")
    (root / NAMES[1] / "weights.safetensors").unlink()
    code, said = unweave("train", "--resume", root, "--quiet")
    assert code == 0 and f"'{root / NAMES[0]}' is damaged" in said
    assert weights(root) == {**undisturbed, NAMES[0]: b""}
    frame = pd.read_csv(root / "scores.csv")
    assert sorted(frame["seed"]) == [0, 1, 2] and frame.loc[frame["not_scored"].notna(), "seed"].tolist() == [0]
