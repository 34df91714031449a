"""The steps of CONTRIBUTING.md add a data file format that the conformance table accepts."""

from contributing import follow, run_tests

TITLE, TESTS = "Add a data file format", "tests/conformance/test_data_formats.py"


def test_the_documented_steps_are_sufficient(tmp_path):
    run = run_tests(follow(TITLE, tmp_path), TESTS, "-vv")
    assert run.returncode == 0, run.stdout + run.stderr
    assert ".hdf5" in run.stdout


def test_a_format_that_is_not_in_the_list_is_not_tested(tmp_path):
    run = run_tests(follow(TITLE, tmp_path, leave_out=(1, 2)), TESTS, "--collect-only")
    assert run.returncode == 0 and ".npz" in run.stdout and ".hdf5" not in run.stdout
