"""The examples are whole programs, and they run."""

import runpy
import sys
from pathlib import Path

EXAMPLES = Path(__file__).parents[1] / "examples"


def test_own_method(tmp_path, monkeypatch, capsys):
    words = ["--data", "digits(size=16)", "--steps", "20", "--out", str(tmp_path / "run")]
    monkeypatch.setattr(sys, "argv", ["own_method.py", *words])
    runpy.run_path(str(EXAMPLES / "own_method.py"), run_name="__main__")
    assert "mig" in capsys.readouterr().out
    assert "SparseVAE" in (tmp_path / "run" / "report.html").read_text()


def test_every_example_is_tested():
    assert {p.name for p in EXAMPLES.glob("*.py")} == {"own_method.py"}
