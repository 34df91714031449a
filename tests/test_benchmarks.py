"""Benchmarks are run by hand, seldom: at least what they import from the package must be there."""

import runpy
import sys
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).parents[1] / "benchmarks"


@pytest.mark.parametrize("name", sorted(str(path.relative_to(BENCHMARKS)) for path in BENCHMARKS.rglob("*.py")))
def test_it_still_fits_the_package(name, monkeypatch):
    monkeypatch.setattr(sys, "path", [str((BENCHMARKS / name).parent), *sys.path])
    assert "__doc__" in runpy.run_path(str(BENCHMARKS / name), run_name="not_main")
