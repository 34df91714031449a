"""Bad input at the command line and in files: one line about it, and nothing half-written.

The numbers in brackets are those of the defects that the tests reproduce.
"""

import shlex

import pytest
from command import unweave

import unweave as uw

TINY = ["--data", "digits", "--set", "net=mlp", "--steps", "2", "--batch", "4", "--device", "cpu", "--quiet"]


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """Run each test in an empty folder, with an empty cache."""
    monkeypatch.setenv("UNWEAVE_CACHE", str(tmp_path / "cache"))
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    return tmp_path / "work"


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    path = tmp_path_factory.mktemp("trained") / "run"
    uw.train("beta_vae", "digits", out=path, steps=2, batch=4, latents=3, net="mlp", device="cpu")
    return path


def refused(capsys, *words):
    """Run a command that must be refused; return its only line."""
    code, _, err = unweave(capsys, *words)
    line = err.strip().splitlines()[-1]
    assert code == 2 and line.startswith("error: "), err
    return line


# --- text of users on the console (B-H4) ---------------------------------------------------------------------------


@pytest.mark.parametrize("text", ["\\[/x]", "x[/red]", "a[v2]", "[bold]", ":smile:", "\\"])
def test_brackets_and_backslashes_in_words_are_text(text, capsys):
    """(B-H4)"""
    assert repr(text) in refused(capsys, "list", text)


def test_the_next_commands_can_be_copied(folder, trained, capsys, monkeypatch):
    """(B-H4)"""
    monkeypatch.setenv("COLUMNS", "40")
    name = "x[/red] [v2] :smile: it's" + "long" * 20
    code, out, _ = unweave(capsys, "train", "beta_vae", *TINY, "--out", name)
    assert code == 0 and out.startswith(f"{name} is trained.")
    command = next(line for line in out.splitlines() if line.startswith("  unweave evaluate"))
    assert shlex.split(command) == ["unweave", "evaluate", name]
    assert (folder / name / "config.json").is_file()
    code, out, _ = unweave(capsys, "report", trained, "--out", f"{name}.html")
    assert code == 0 and out.startswith(f"{name}.html is written")


def test_control_characters_are_shown_as_escapes(folder, capsys):
    """(B: Low)"""
    name = "red\x1b[31m"
    code, out, err = unweave(capsys, "train", "beta_vae", *TINY, "--out", name)
    assert code == 0 and (folder / name).is_dir()
    assert "\x1b" not in out + err and "red\\x1b[31m is trained" in out
    assert "unweave evaluate $'red\\x1b[31m'" in out
    assert "\x1b" not in refused(capsys, "train", "beta_vae", *TINY, "--data", "\x1b[31m/x")


def test_a_name_that_is_not_utf8_can_be_printed(folder, capsys):
    """(B-H4)"""
    assert "x[v2].txt" in refused(capsys, "train", "vae", "--data", "caf\udce9/x[v2].txt")


def test_a_tilde_in_an_option_is_the_home_folder(folder, tmp_path, trained, capsys, monkeypatch):
    """(B: Low)"""
    monkeypatch.setenv("HOME", str(tmp_path))
    assert unweave(capsys, "evaluate", trained, "--metrics", "mig", "--out=~/scores")[0] == 0
    assert (tmp_path / "scores" / "scores.json").is_file() and not list(folder.iterdir())


def test_an_unknown_strategy_is_refused_for_one_run(capsys):
    """(B: Low)"""
    assert "nonsense" in refused(capsys, "train", "beta_vae", *TINY, "--strategy", "nonsense")
