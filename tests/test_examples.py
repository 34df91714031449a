"""The examples are whole programs, and they run."""

import runpy
import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

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
    for part in ("ada_gvae: the whole", "ml_vae: the content", "ml_vae: the style"):
        assert f"{part} code knows" in said
    assert len(list((tmp_path / "made" / "pictures").glob("*.png"))) == 60


def test_few_labels(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["few_labels.py", "--steps", "40", "--out", str(tmp_path / "few")])
    runpy.run_path(str(EXAMPLES / "few_labels.py"), run_name="__main__")
    assert "% right of the 1697 pictures without a label (all)" in capsys.readouterr().out
    assert len((tmp_path / "few" / "predicted.csv").read_text().splitlines()) == 1798
    assert (tmp_path / "few" / "report.html").exists()


def run_faces(path, size, tmp_path, monkeypatch, capsys):
    words = ["--data", str(path), "--steps", "2", "--net", "small", "--size", str(size), "--out", str(tmp_path / "run")]
    monkeypatch.setattr(sys, "argv", ["faces.py", *words])
    runpy.run_path(str(EXAMPLES / "faces.py"), run_name="__main__")
    assert "of the lights are told rightly" in capsys.readouterr().out
    for name, rows in (("relight.png", 14), ("swap.png", 7)):
        with Image.open(tmp_path / "run" / name) as picture:
            assert picture.size == (8 * size, rows * size)


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
