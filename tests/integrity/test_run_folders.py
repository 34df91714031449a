"""Run folders as transactions: created at once, written by one process, safe against interruptions at any moment."""

import errno
import inspect
import os
import shutil
import signal
import subprocess
import sys
import warnings
from pathlib import Path

import pytest

import unweave as uw

OPTIONS = {"net": "small", "latents": 2, "batch": 4, "log_every": 1, "checkpoint_every": 1, "device": "cpu"}
LINUX = pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="needs the names of open files")
START = """
import os, signal, sys
import unweave as uw

def at_first_write(action):
    def fsync(file):
        os.fsync = real
        action()
        real(file)
    real, os.fsync = os.fsync, fsync

"""
WORDS = ("train", "vae", "--data", "digits(size=8)", "--set", "net=small", "--steps", "3", "--device", "cpu", "--quiet")


def train(out, steps=3, **options):
    return uw.train("vae", "digits(size=8)", out=out, steps=steps, **{**OPTIONS, **options})


def main():
    """Run the command line with the words in sys.argv."""
    try:
        from unweave.cli.app import main
    except ImportError:  # before the restructuring
        from unweave.cli import main
    main()


def python(folder, script):
    """Return the finished process of a Python program that starts with START."""
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-c", START + script]
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=120)


def interrupted(out, steps=3, **options):
    """Train a run that is interrupted after its first log record."""

    def stop(progress):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train(out, steps, observe=stop, **options)
    return out


def contents(folder):
    return {path: (path.read_bytes(), path.stat().st_mtime_ns) for path in folder.rglob("*") if path.is_file()}


def once(monkeypatch, name, action):
    """Call `action` before the first call of a function of `os`."""
    real = getattr(os, name)

    def call(*arguments, **options):
        monkeypatch.setattr(os, name, real)
        action()
        return real(*arguments, **options)

    monkeypatch.setattr(os, name, call)


def fail():
    raise OSError(errno.ENOSPC, "No space left on device")


# --- creation ------------------------------------------------------------------------------------------------------


def test_a_run_does_not_replace_or_delete_one_that_another_process_creates_meanwhile(tmp_path, monkeypatch):
    """(B-C1) The other process creates the same folder after this one has seen that it does not exist."""
    once(monkeypatch, "mkdir", lambda: train(tmp_path / "new" / "run", seed=7))
    with pytest.raises(uw.UserError) as caught:
        train(tmp_path / "new" / "run")
    assert str(tmp_path / "new" / "run") in str(caught.value)
    assert uw.load(tmp_path / "new" / "run").config["seed"] == 7
    assert [path.name for path in (tmp_path / "new").iterdir()] == ["run"]


def test_a_run_that_cannot_be_written_leaves_the_runs_of_others(tmp_path, monkeypatch):
    """(B-C1) Two processes write below a new folder; the disk is full for one of them."""
    once(monkeypatch, "fsync", lambda: [train(tmp_path / "new" / "other"), fail()])
    with pytest.raises(uw.UserError) as caught:
        train(tmp_path / "new" / "run")
    assert str(tmp_path / "new" / "run") in str(caught.value)
    assert uw.load(tmp_path / "new" / "other").config["steps"] == 3
    assert [path.name for path in (tmp_path / "new").iterdir()] == ["other"]


def test_a_run_that_cannot_be_written_leaves_nothing(tmp_path, monkeypatch):
    once(monkeypatch, "fsync", fail)
    with pytest.raises(uw.UserError):
        train(tmp_path / "new" / "parent" / "run")
    assert not any(tmp_path.iterdir())


def test_a_process_killed_while_it_creates_a_folder_leaves_no_half_made_run(tmp_path):
    """(A2, B-C1) The run can be trained again, and the leftover is removed once it is old."""
    script = "at_first_write(lambda: os._exit(9))\nuw.train('vae', 'digits(size=8)', out='run', net='small', steps=1)"
    assert python(tmp_path, script).returncode == 9
    left = list(tmp_path.iterdir())
    train(tmp_path / "run")
    assert uw.score_runs([tmp_path / "run"], metrics=["irs"])["run"].tolist() == [str(tmp_path / "run")]
    for path in left:
        assert path.exists()  # it may belong to a running process
        os.utime(path, (0, 0))
    train(tmp_path / "second")
    assert {path.name for path in tmp_path.iterdir()} == {"run", "second"}


def test_sigterm_while_a_folder_is_created_is_answered_like_any_other(tmp_path):
    """Between the creation of the folder and the first step."""
    script = f"""
at_first_write(lambda: os.kill(os.getpid(), signal.SIGTERM))
sys.argv = {["unweave", *WORDS, "--out", "run"]!r}
{inspect.getsource(main)}
main()
"""
    process = python(tmp_path, script)
    assert process.returncode == 143
    assert process.stderr == "stopped by SIGTERM; resume with: unweave train --resume run\n"
    assert uw.resume(tmp_path / "run").config["steps"] == 3


# --- one writer ----------------------------------------------------------------------------------------------------


def test_a_run_in_training_cannot_be_resumed_meanwhile(tmp_path, monkeypatch, capsys):
    """(B-H1) It can be evaluated, and afterwards it is like a run that was left alone."""
    monkeypatch.setattr(sys, "argv", ["unweave", "train", "--resume", str(tmp_path / "run"), "--quiet"])

    def observe(progress):
        if progress.step == 2:
            with pytest.raises(SystemExit) as stop:
                main()
            assert stop.value.code == 2
            error = capsys.readouterr().err
            assert error.count("\n") == 1 and f"process {os.getpid()}" in error
            uw.evaluate(tmp_path / "run", metrics=["irs"], save=False)

    run = train(tmp_path / "run", observe=observe)
    assert [record["step"] for record in run.folder.logs()] == [1, 2, 3]
    assert train(tmp_path / "alone").folder.logs() == run.folder.logs()


def test_no_run_of_a_sweep_is_trained_if_another_process_trains_one(tmp_path):
    """(B-H1)"""
    runs = [{"method": "vae", "data": "digits(size=8)", **OPTIONS, "steps": 3, "seed": seed} for seed in (0, 1)]
    folders = [tmp_path / f"vae-digits-seed{seed}" for seed in (0, 1)]
    interrupted(folders[0])
    before = contents(folders[0])

    def observe(progress):
        with pytest.raises(uw.UserError):
            uw.fit(runs, out=tmp_path, resume=True)

    train(folders[1], seed=1, observe=observe)
    after = contents(folders[0])
    assert {path: found for path, found in after.items() if path.name != ".lock"} == {
        path: found for path, found in before.items() if path.name != ".lock"
    }


def test_a_finished_run_is_only_read(tmp_path):
    run = train(tmp_path / "run")
    (run.folder.path / ".lock").unlink(missing_ok=True)
    before = contents(run.folder.path)
    assert uw.resume(run.folder.path).config["steps"] == 3
    uw.evaluate(run.folder.path, metrics=["irs"], save=False)
    assert contents(run.folder.path) == before


# --- writes --------------------------------------------------------------------------------------------------------


def test_an_interruption_during_a_write_is_not_lost(tmp_path, monkeypatch):
    """(A20) Ctrl-C right after the training time has been stored."""
    replace = os.replace

    def interrupt(source, target):
        replace(source, target)
        if Path(target).name == "time.json":
            raise KeyboardInterrupt

    monkeypatch.setattr(os, "replace", interrupt)
    with pytest.raises(KeyboardInterrupt):
        train(tmp_path / "run", checkpoint_every=500)


def test_files_have_the_permissions_that_the_user_wants(tmp_path):
    """(A20)"""
    before = os.umask(0o077)
    try:
        run = train(tmp_path / "run")
    finally:
        os.umask(before)
    modes = {path.name: oct(path.stat().st_mode & 0o777) for path in run.folder.path.iterdir() if path.is_file()}
    assert set(modes.values()) == {"0o600"}, modes


@LINUX
def test_a_checkpoint_is_never_ahead_of_its_log_after_a_power_failure(tmp_path, monkeypatch):
    """(A20) Log records are on disk before the checkpoint that follows them, and so is the name of the checkpoint."""
    fsync, replace, events = os.fsync, os.replace, []

    def note(file):
        number = file if isinstance(file, int) else file.fileno()
        events.append(("sync", Path(os.readlink(f"/proc/self/fd/{number}")).name))
        fsync(file)

    monkeypatch.setattr(os, "fsync", note)
    monkeypatch.setattr(os, "replace", lambda a, b: (events.append(("rename", Path(b).name)), replace(a, b)))
    interrupted(tmp_path / "run")
    uw.resume(tmp_path / "run")
    for name in ("checkpoint.safetensors", "weights.safetensors"):
        renamed = events.index(("rename", name))
        assert ("sync", "log.jsonl") in events[:renamed] and ("sync", "run") in events[renamed:]


def test_temporary_files_of_killed_processes_are_removed(tmp_path):
    """(B-M3) A kill during a write leaves a file as large as a checkpoint."""
    run = interrupted(tmp_path / "run")
    left = [run / ".checkpoint.safetensors.k3_x9abc", run / ".log.jsonl.0123abcd"]
    for path in [*left, run / ".notes"]:
        path.write_bytes(bytes(1000))
    uw.resume(run)
    assert not any(path.exists() for path in left) and (run / ".notes").exists()


def test_a_run_can_be_trained_on_a_file_system_without_locks(tmp_path, monkeypatch):
    fcntl = pytest.importorskip("fcntl")

    def flock(*_):
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(fcntl, "flock", flock)
    with pytest.warns(UserWarning, match="locks") as caught:
        train(tmp_path / "run")
    assert len(caught) == 1
    shutil.rmtree(tmp_path / "run")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert train(tmp_path / "run").config["steps"] == 3


def test_a_name_as_long_as_the_system_allows_is_accepted(tmp_path):
    assert train(tmp_path / ("ä" * 120)).config["steps"] == 3
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
