"""The steps of "Add a metric" in CONTRIBUTING.md, followed in a copy of the repository."""

import re

import pytest
from contributing import follow, run_python, run_tests

TITLE, NAME = "Add a metric", "best_correlation"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return follow(TITLE, tmp_path_factory.mktemp("repository"))


def test_the_new_metric_passes_the_conformance_tests(folder):
    done = run_tests(folder, "tests/conformance/test_metrics.py", "-k", NAME)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-1000:]
    assert int(re.search(r"(\d+) passed", done.stdout)[1]) > 30


def test_the_example_in_its_docstring_is_right(folder):
    done = run_python(folder, "-m", "doctest", f"unweave/metrics/{NAME}.py")
    assert done.returncode == 0, done.stdout


def test_commands_know_the_new_metric(folder):
    assert NAME in run_python(folder, "-m", "unweave", "list", "metrics").stdout


def test_the_new_page_passes_the_tests_of_pages(folder):
    done = run_tests(folder, "tests/test_reference.py", "-k", f"{NAME} or complete[metrics]")
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-1000:]
