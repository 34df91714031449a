"""The examples run as programs."""

import runpy
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from PIL import Image

import unweave as uw

EXAMPLES = Path(__file__).parents[1] / "examples"
NAMES = {"faces.py", "few_labels.py", "own_method.py", "pairs_and_groups.py"}


def run_example(monkeypatch, name, *arguments):
    monkeypatch.setattr(sys, "argv", [name, *map(str, arguments)])
    runpy.run_path(str(EXAMPLES / name), run_name="__main__")


def test_own_method(tmp_path, monkeypatch, capsys):
    options = ["--data", "digits(size=16)", "--steps", 20, "--out", tmp_path / "run"]
    run_example(monkeypatch, "own_method.py", *options)
    assert "mig" in capsys.readouterr().out
    assert "SparseVAE" in (tmp_path / "run" / "report.html").read_text()


def test_pairs_and_groups(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("UNWEAVE_CACHE", str(tmp_path / "cache"))
    folder = tmp_path / "example"
    run_example(monkeypatch, "pairs_and_groups.py", "--images", 60, "--steps", 5, "--folder", folder)
    output = capsys.readouterr().out
    undivided, divided = ("ada_gvae", "ada_ml_vae", "f_statistic"), ("ml_vae", "gvae", "group_tcvae")
    for methods, parts in ((undivided, ["whole"]), (divided, ["content", "style"])):
        for method in methods:
            lines = [line for line in output.splitlines() if line.startswith(f"{method}:")]
            assert [line.split()[-2] for line in lines] == parts
    assert len(list((folder / "runs").glob("*/config.json"))) == 12
    assert len(list((folder / "images").glob("*.png"))) == 60


def test_few_labels(tmp_path, monkeypatch, capsys):
    run_example(monkeypatch, "few_labels.py", "--steps", 40, "--out", tmp_path / "few")
    (line,) = [line for line in capsys.readouterr().out.splitlines() if "1697 unlabelled images" in line]
    assert float(line.split()[1].rstrip("%")) > 40, line
    table = pd.read_csv(tmp_path / "few" / "predicted.csv").set_index("file")
    assert len(table) == 1797 and table["digit_labelled"].sum() == table["digit_true"].notna().sum() == 100
    assert table["digit_confidence"].between(0.1, 1.0).all() and table["digit_confidence"].nunique() > 100
    trained = uw.load(tmp_path / "few" / "run")
    with torch.no_grad():
        (probabilities,) = trained.representation.classify(trained.data.images(torch.arange(20)))
    assert table["digit_confidence"].iloc[:20].to_numpy() == pytest.approx(probabilities.amax(1).numpy(), abs=1e-4)
    assert (tmp_path / "few" / "report.html").exists()


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("few_labels.py", ["--labels", 5000]),
        ("few_labels.py", ["--labels", 0]),
        ("few_labels.py", []),
        ("faces.py", []),
    ],
)
def test_invalid_options_write_nothing(name, options, tmp_path, monkeypatch, capsys):
    out = tmp_path / "example"
    if not options:
        out.mkdir()  # of an earlier call
    before = list(tmp_path.rglob("*"))
    with pytest.raises(SystemExit) as caught:
        run_example(monkeypatch, name, *options, "--out", out)
    assert caught.value.code == 2 and capsys.readouterr().out == ""
    assert list(tmp_path.rglob("*")) == before


def test_faces(tmp_path, monkeypatch, capsys):
    subject, light = np.arange(60) % 3, np.arange(60) % 4
    images = np.random.default_rng(0).integers(0, 256, (60, 16, 16), dtype=np.uint8)
    path, out, size = tmp_path / "f.npz", tmp_path / "faces", 8
    np.savez(path, images=images, subject=subject, azimuth_deg=light // 2, elevation_deg=light % 2)
    run_example(monkeypatch, "faces.py", "--data", path, "--steps", 2, "--net", "small", "--size", size, "--out", out)
    assert "of the lights" in capsys.readouterr().out
    for name, rows in (("relight.png", 14), ("swap.png", 7)):
        with Image.open(out / name) as grid:
            assert grid.size == (8 * size, rows * size)
    page = (out / "report.html").read_text()
    assert "subject" in page and "light" in page
    labels = pd.read_csv(out / "labels.csv").set_index("file")
    assert labels.columns.tolist() == ["subject", "light"] and 0.2 < labels.notna().to_numpy().mean() < 0.5


def test_every_example_is_tested():
    assert {p.name for p in EXAMPLES.glob("*.py")} == NAMES
