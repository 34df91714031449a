"""The benchmark scripts are run by hand; here each is only imported, to notice names that moved."""

import runpy
import sys
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).parents[1] / "benchmarks"


@pytest.mark.parametrize("name", sorted(str(path.relative_to(BENCHMARKS)) for path in BENCHMARKS.rglob("*.py")))
def test_imports(name, monkeypatch):
    monkeypatch.setattr(sys, "path", [str((BENCHMARKS / name).parent), *sys.path])
    assert "__doc__" in runpy.run_path(str(BENCHMARKS / name), run_name="not_main")
