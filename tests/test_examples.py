"""The examples are whole programs, and they run."""

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


def test_own_method(tmp_path, monkeypatch, capsys):
    words = ["--data", "digits(size=16)", "--steps", "20", "--out", str(tmp_path / "run")]
    monkeypatch.setattr(sys, "argv", ["own_method.py", *words])
    runpy.run_path(str(EXAMPLES / "own_method.py"), run_name="__main__")
    assert "mig" in capsys.readouterr().out
    assert "SparseVAE" in (tmp_path / "run" / "report.html").read_text()


def test_pairs_and_groups(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("UNWEAVE_CACHE", str(tmp_path / "cache"))
    words = ["--pictures", "60", "--steps", "5", "--folder", str(tmp_path / "made")]
    monkeypatch.setattr(sys, "argv", ["pairs_and_groups.py", *words])
    runpy.run_path(str(EXAMPLES / "pairs_and_groups.py"), run_name="__main__")
    said = capsys.readouterr().out
    for part in ("ada_gvae: the whole", "ada_ml_vae: the whole", "f_statistic: the whole"):
        assert f"{part} code knows" in said
    for method in ("ml_vae", "gvae", "group_tcvae"):
        assert f"{method}: the content code knows" in said and f"{method}: the style code knows" in said
    assert len(list((tmp_path / "made" / "runs").iterdir())) == 12
    assert len(list((tmp_path / "made" / "pictures").glob("*.png"))) == 60


def test_few_labels(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["few_labels.py", "--steps", "40", "--out", str(tmp_path / "few")])
    runpy.run_path(str(EXAMPLES / "few_labels.py"), run_name="__main__")
    (line,) = [line for line in capsys.readouterr().out.splitlines() if "without a label (all)" in line]
    assert "% right of the 1697 pictures without a label (all)" in line and float(line.split("%")[0]) > 40, line
    table = pd.read_csv(tmp_path / "few" / "predicted.csv").set_index("file")
    assert len(table) == 1797 and table["digit_labelled"].sum() == table["digit_true"].notna().sum() == 100
    assert table["digit_confidence"].between(0.1, 1.0).all() and table["digit_confidence"].nunique() > 100
    trained = uw.load(tmp_path / "few" / "run")
    with torch.no_grad():
        (probabilities,) = trained.representation.classify(trained.data.images(torch.arange(20)))
    assert table["digit_confidence"].iloc[:20].to_numpy() == pytest.approx(probabilities.amax(1).numpy(), abs=1e-4)
    assert (tmp_path / "few" / "report.html").exists()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--labelled", "5000"], "labelled 5000 is out of range; use 2 to 1797"),
        (["--labelled", "0"], "labelled 0 is out of range; use 2 to 1797"),
        (["--steps", "0"], "steps 0 is too small; use 1 or more"),
        ([], "few' is not empty; give a folder that is new"),
    ],
)
def test_few_labels_refuses_before_it_writes(words, said, tmp_path, monkeypatch, capsys):
    out = tmp_path / "few"
    if not words:  # as after a first time
        (out / "run").mkdir(parents=True)
    before = list(tmp_path.rglob("*"))
    monkeypatch.setattr(sys, "argv", ["few_labels.py", *words, "--out", str(out)])
    with pytest.raises(SystemExit) as ended:
        runpy.run_path(str(EXAMPLES / "few_labels.py"), run_name="__main__")
    told = capsys.readouterr()
    assert ended.value.code == 2 and told.out == "" and said in told.err and len(told.err.splitlines()) == 1
    assert list(tmp_path.rglob("*")) == before


def run_faces(path, size, tmp_path, monkeypatch, capsys):
    words = ["--data", str(path), "--steps", "2", "--net", "small", "--size", str(size)]
    monkeypatch.setattr(sys, "argv", ["faces.py", *words, "--out", str(tmp_path / "faces")])
    runpy.run_path(str(EXAMPLES / "faces.py"), run_name="__main__")
    assert "of the lights are told rightly" in capsys.readouterr().out
    out = tmp_path / "faces"
    for name, rows in (("relight.png", 14), ("swap.png", 7)):
        with Image.open(out / name) as picture:
            assert picture.size == (8 * size, rows * size)
    page = (out / "report.html").read_text()
    assert "Drawn by subject" in page and "Drawn by light" in page and "Analogies" in page
    known = pd.read_csv(out / "known.csv").set_index("file")
    assert known.columns.tolist() == ["subject", "light"] and 0.2 < known.notna().to_numpy().mean() < 0.5
    with pytest.raises(SystemExit):  # a second time
        runpy.run_path(str(EXAMPLES / "faces.py"), run_name="__main__")
    assert "is not empty; give a folder that is new" in capsys.readouterr().err


def test_faces(tmp_path, monkeypatch, capsys):
    subject, light = np.arange(60) % 3, np.arange(60) % 4
    images = np.random.default_rng(0).integers(0, 256, (60, 16, 16), dtype=np.uint8)
    np.savez(tmp_path / "f.npz", images=images, subject=subject, azimuth_deg=light // 2, elevation_deg=light % 2)
    run_faces(tmp_path / "f.npz", 8, tmp_path, monkeypatch, capsys)


def test_faces_with_the_real_ones(tmp_path, monkeypatch, capsys):
    path = Path(__file__).parents[1].parent / "shared" / "data" / "extended_yale_b_64.npz"
    if not path.exists():
        pytest.skip("reference pictures extended_yale_b_64.npz are not beside the repository")
    run_faces(path, 16, tmp_path, monkeypatch, capsys)


def test_every_example_is_tested():
    assert {p.name for p in EXAMPLES.glob("*.py")} == NAMES
