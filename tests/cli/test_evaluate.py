"""The command evaluate, on runs and on files of arrays."""

import json

import numpy as np
import pytest
from command import unweave

import unweave as uw

FACTORS = np.stack(np.unravel_index(np.arange(60), (4, 3, 5)), axis=1).repeat(10, axis=0)
CODES = FACTORS + np.random.default_rng(0).normal(scale=0.3, size=FACTORS.shape)


def test_scores_of_a_file(tmp_path, capsys):
    np.savez(tmp_path / "a.npz", codes=CODES, factors=FACTORS, names=["a", "b", "c"])
    code, out, err = unweave(capsys, "evaluate", tmp_path / "a.npz", "--metrics", "mig,irs", "--resamples", "20")
    assert code == 0, err
    assert "MIG" in out and "95 %" in out and "–" in out
    stored = json.loads((tmp_path / "a.scores" / "scores.json").read_text())
    assert set(stored["scores"]) == {"mig", "irs"} == set(stored["intervals"])
    assert (tmp_path / "a.scores" / "heatmap.png").read_bytes().startswith(b"\x89PNG")
    code, out, _ = unweave(capsys, "evaluate", tmp_path / "a.npz", "--metrics", "mig", "--out", tmp_path / "b" / "c")
    assert code == 0 and "95 %" not in out
    assert {p.name for p in (tmp_path / "b" / "c").iterdir()} == {"scores.json", "heatmap.png"}


def test_scores_of_a_run(tmp_path, capsys):
    run = tmp_path / "run"
    uw.train("beta_vae", "digits", net="mlp", latents=4, steps=3, batch=8, device="cpu", out=run)
    code, out, err = unweave(capsys, "evaluate", run, "--rows", "100", "--device", "cpu")
    assert code == 0, err
    assert "factor_vae" in out
    assert {"scores.json", "heatmap.png", "codes.safetensors"} <= {p.name for p in run.iterdir()}


@pytest.mark.parametrize(
    ("words", "names"),
    [
        (["evaluate", "nothing.npz"], "nothing.npz"),
        (["evaluate", "FILE", "--metrics", "migg"], "'mig'"),
        (["evaluate", "FILE", "--rows", "10"], "got '10'"),
        (["evaluate", "FILE", "--resamples", "-1"], "resamples"),
        (["evaluate", "FILE", "--metrics", "group_mig"], "groups"),
        (["evaluate", "nothing", "--rows", "many"], "got 'many'"),
    ],
)
def test_bad_input_is_one_line_and_writes_no_files(words, names, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    np.savez("a.npz", codes=CODES, factors=FACTORS)
    code, _, err = unweave(capsys, *["a.npz" if word == "FILE" else word for word in words])
    assert code == 2 and err.startswith("error: ") and err.strip().count("\n") == 0 and names in err
    assert [p.name for p in tmp_path.iterdir()] == ["a.npz"]
