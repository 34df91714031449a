"""Sweeps from the command line: trained together, scored, compared, resumed."""

from __future__ import annotations

import pandas as pd
import pytest
from raises import raises
from typer.testing import CliRunner

from unweave.cli.app import app
from unweave.cli.sweep import read_seeds, split_values
from unweave.runs import RunFolder

SMALL = ["--data", "rooms(size=8)", "--set", "net=small", "--set", "latents=3", "--steps", "4", "--batch", "4"]
SMALL += ["--log-every", "2", "--device", "cpu"]


def run(*words):
    return CliRunner().invoke(app, list(words), catch_exceptions=False)


def test_seeds():
    assert read_seeds("0-3") == [0, 1, 2, 3]
    assert read_seeds("5, 0-1") == [5, 0, 1]
    for wrong in ("", "a", "3-1", "1,1", "-1", "1-", "0-99999999"):
        with raises("seeds"):
            read_seeds(wrong)


def test_values():
    assert split_values("1, 2,4") == ["1", "2", "4"]
    assert split_values("linear(0, 1, 100),4") == ["linear(0, 1, 100)", "4"]
    assert split_values("q(y|x); labels: k, c") == ["q(y|x); labels: k, c"]
    with raises("set", value="1,,2"):
        split_values("1,,2")


def test_a_sweep_ends_in_runs_a_table_and_a_page(tmp_path):
    done = run("train", "beta_vae", *SMALL, "--set", "beta=1,4", "--seeds", "0-1", "--out", str(tmp_path / "s"))
    assert done.exit_code == 0, done.output
    names = sorted(p.name for p in (tmp_path / "s").iterdir() if p.is_dir())
    assert names == [f"beta_vae-rooms-beta{b}-seed{s}" for b in (1, 4) for s in (0, 1)]
    assert all(RunFolder(tmp_path / "s" / name).finished for name in names)
    frame = pd.read_csv(tmp_path / "s" / "scores.csv")
    assert len(frame) == 4 and sorted(frame["beta"].unique()) == [1.0, 4.0] and frame["mig"].notna().all()
    best = frame[frame["beta"] == 4.0]["mig"].max()
    assert "…" not in done.output and f"best  {best:.3f}" in done.output  # 80 columns, nothing cut off
    assert "<html" in (tmp_path / "s" / "compare.html").read_text()
    again = run("compare", str(tmp_path / "s"), "--out", str(tmp_path / "c"), "--metrics", "mig")
    assert again.exit_code == 0 and (tmp_path / "c" / "compare.html").exists()
    assert pd.read_csv(tmp_path / "c" / "scores.csv")["mig"].tolist() == pytest.approx(frame["mig"].tolist())


def test_the_table_shows_schedules_as_they_are_typed(tmp_path):
    schedule = "linear(0,0.001,4,0)"
    done = run("train", "vae", *SMALL, "--lr", "1e-3", "--out", str(tmp_path / "a"))
    assert done.exit_code == 0, done.output
    done = run("train", "vae", *SMALL, "--lr", schedule, "--out", str(tmp_path / "b"))
    assert done.exit_code == 0, done.output
    done = run("compare", str(tmp_path / "a"), str(tmp_path / "b"), "--out", str(tmp_path / "c"), "--metrics", "mig")
    assert schedule in done.output


def test_a_sweep_whose_runs_all_diverge_is_an_error(tmp_path):
    words = ["train", "vae", *SMALL, "--lr", "1e30", "--seeds", "0-1", "--out", str(tmp_path / "s")]
    with raises("lr", value=1e30):
        app(words, standalone_mode=False)
    assert len(pd.read_csv(tmp_path / "s" / "scores.csv")) == 2
    words = ["train", "beta_vae", *SMALL, "--set", "beta=1,1e38", "--lr", "0.001", "--out", str(tmp_path / "one")]
    assert run(*words).exit_code == 0
    assert pd.read_csv(tmp_path / "one" / "scores.csv")["diverged"].notna().tolist() == [False, True]


def test_several_methods_in_one_sweep(tmp_path):
    done = run("train", "vae,beta_vae", *SMALL, "--out", str(tmp_path / "s"))
    assert done.exit_code == 0, done.output
    assert sorted(pd.read_csv(tmp_path / "s" / "scores.csv")["method"]) == ["beta_vae", "vae"]


def test_an_interrupted_sweep_is_resumed(tmp_path):
    whole = run("train", "vae", *SMALL, "--seeds", "0-1", "--out", str(tmp_path / "whole"))
    assert whole.exit_code == 0
    cut = tmp_path / "cut"
    assert run("train", "vae", *SMALL, "--seeds", "0-1", "--out", str(cut)).exit_code == 0
    for folder in cut.glob("vae*"):
        (folder / "weights.safetensors").unlink()
    assert run("train", "--resume", str(cut)).exit_code == 0
    for folder in (tmp_path / "whole").glob("vae*"):
        other = cut / folder.name / "weights.safetensors"
        assert other.read_bytes() == (folder / "weights.safetensors").read_bytes()


@pytest.mark.parametrize(
    ("words", "argument", "value"),
    [
        (["train", "beta_vae,betavae", "--seeds", "0-1"], "method", "betavae"),
        (["train", "beta_vae", "--seeds", "one"], "seeds", "one"),
        (["train", "beta_vae", "--set", "beta=1,x", "--seeds", "0-1"], "beta", "x"),
        (["train", "beta_vae", "--set", "beta=1,2", "--strategy", "magic"], "strategy", "magic"),
        (["train", "--resume", "."], "run", "."),
        (["compare", "nowhere"], "run", "nowhere"),
    ],
)
def test_bad_input_is_one_line_and_leaves_nothing(words, argument, value, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with raises(argument, value=value):
        run(*words)
    assert list(tmp_path.iterdir()) == []
