"""The steps of "Add a method" in CONTRIBUTING.md, followed in a copy of the repository."""

import re

import pytest
from contributing import follow, run_python, run_tests

TITLE, NAME, TESTS = "Add a method", "sparse_vae", "tests/conformance/test_methods.py"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return follow(TITLE, tmp_path_factory.mktemp("repository"))


def test_the_new_method_passes_the_conformance_tests(folder):
    run = run_tests(folder, TESTS, "-k", NAME)
    assert run.returncode == 0, run.stdout[-3000:] + run.stderr[-1000:]
    assert int(re.search(r"(\d+) passed", run.stdout)[1]) >= 12


def test_help_texts_come_from_the_file_of_the_method(folder):
    run = run_python(folder, "-m", "unweave", "info", NAME)
    assert run.returncode == 0 and "weight of the L1 norm" in " ".join(run.stdout.split())
    assert NAME in run_python(folder, "-m", "unweave", "list", "methods").stdout


def test_the_new_page_passes_the_tests_of_pages(folder):
    done = run_tests(folder, "tests/test_reference.py", "-k", f"{NAME} or complete[methods]")
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-1000:]
