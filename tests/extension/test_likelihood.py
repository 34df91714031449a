"""The steps of "Add a likelihood" in CONTRIBUTING.md, followed in a copy of the repository."""

from contributing import follow, run_python, run_tests

TITLE, NAME, TESTS = "Add a likelihood", "logistic", "tests/conformance/test_likelihoods.py"


def test_the_documented_steps_are_sufficient(tmp_path):
    folder = follow(TITLE, tmp_path)
    run = run_tests(folder, TESTS, "-vv", "-k", NAME)
    assert run.returncode == 0 and "3 passed" in run.stdout, run.stdout + run.stderr
    assert run_tests(folder, "tests/test_reference.py", "-k", "likelihoods").returncode == 0
    assert NAME in run_python(folder, "-m", "unweave", "info", "vae").stdout


def test_a_class_that_is_not_in_the_list_is_not_tested(tmp_path):
    run = run_tests(follow(TITLE, tmp_path, leave_out=(1,)), TESTS, "--collect-only")
    assert "laplace" in run.stdout and NAME not in run.stdout
