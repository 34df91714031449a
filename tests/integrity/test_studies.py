"""Studies: processes on one folder keep each other's scores, and one run does not stop the others."""

import os
import runpy
import sys
import time

import pandas as pd
import pytest

STUDY = ["study", "run", "makhzani2015", "--steps", "2", "--seeds", "0", "--device", "cpu", "--quiet", "--out"]


def unweave(*words):
    """Run a command and return its exit code."""
    before, sys.argv = sys.argv, ["unweave", *map(str, words)]
    try:
        with pytest.raises(SystemExit) as stop:
            runpy.run_module("unweave", run_name="__main__")
        return stop.value.code or 0
    finally:
        sys.argv = before


def other_process(root, waits, released, *words):
    """Start a command in another process, which waits for the file `released` before it creates its first folder.

    Return its number when it waits, that is, when the file `waits` exists.
    """
    if (child := os.fork()) == 0:

        def wait(event, args):
            while event == "os.mkdir" and str(root) in str(args[0]) and not released.exists():
                waits.write_text("")
                time.sleep(0.01)

        sys.addaudithook(wait)
        code = 1
        try:
            code = unweave(*words)
        finally:
            os._exit(code)
    while not waits.exists():
        assert os.waitpid(child, os.WNOHANG) == (0, 0), "the other process ended"
        time.sleep(0.01)
    return child


def test_two_processes_on_one_folder_keep_each_others_scores(tmp_path):
    """(A11)"""
    root, released = tmp_path / "study", tmp_path / "released"
    child = other_process(root, tmp_path / "waits", released, *STUDY, root, "--only", "method=aae_semi")
    assert unweave(*STUDY, root, "--only", "method=aae_cluster") == 0
    assert list(pd.read_csv(root / "scores.csv")["method"]) == ["aae_cluster"]
    released.touch()
    assert os.waitpid(child, 0)[1] == 0
    assert sorted(pd.read_csv(root / "scores.csv")["method"]) == ["aae_cluster", "aae_semi"]
    text = (root / "table.md").read_text()
    assert "aae_semi" in text and "aae_cluster" in text


def test_a_damaged_run_does_not_stop_a_study(tmp_path, capsys):
    """(A16)"""
    words = [*STUDY, tmp_path, "--only", "method=aae_semi,aae_cluster"]
    assert unweave(*words) == 0
    folder = next(tmp_path.glob("aae_semi*"))
    (folder / "weights.safetensors").write_bytes(b"")
    capsys.readouterr()
    assert unweave(*words) == 0
    assert str(folder) in capsys.readouterr().err
    frame = pd.read_csv(tmp_path / "scores.csv").set_index("method")
    assert "cannot be read" in frame.loc["aae_semi", "not_scored"] and pd.isna(frame.loc["aae_cluster", "not_scored"])
    assert pd.isna(frame.loc["aae_semi", "error"]) and frame.loc["aae_cluster", "error"] > 0
    assert "(1 not scored)" in (tmp_path / "table.md").read_text()


def test_runs_of_one_row_that_differ_in_more_than_the_seed_are_refused(tmp_path, capsys):
    """(A10)"""
    words = ["--only", "method=aae_cluster"]
    assert unweave(*STUDY, tmp_path / "a", *words) == 0
    frame = pd.read_csv(tmp_path / "a" / "scores.csv")
    other = frame.assign(run="aae_cluster-seed1", seed=1, precision="bf16")
    other.to_csv(tmp_path / "other.csv", index=False)
    assert (
        unweave("study", "table", "makhzani2015", tmp_path / "a", tmp_path / "other.csv", "--out", tmp_path / "t") == 2
    )
    said = capsys.readouterr().err
    assert "bf16" in said and "float32" in said and not (tmp_path / "t").exists()
    other.assign(precision="float32").to_csv(tmp_path / "other.csv", index=False)
    assert (
        unweave("study", "table", "makhzani2015", tmp_path / "a", tmp_path / "other.csv", "--out", tmp_path / "t") == 0
    )
