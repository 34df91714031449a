"""The steps of CONTRIBUTING.md add a report panel that the conformance table accepts."""

from contributing import follow, run_tests

TITLE, TESTS = "Add a report panel", "tests/conformance/test_panels.py"


def test_the_documented_steps_are_sufficient(tmp_path):
    run = run_tests(follow(TITLE, tmp_path), TESTS, "-k", "prior_samples or listed", "-vv")
    assert run.returncode == 0, run.stdout + run.stderr
    assert "test_panel_renders[prior_samples]" in run.stdout
    assert "test_panel_is_left_out_without[prior_samples-decoder]" in run.stdout


def test_a_panel_that_is_not_in_the_list_fails(tmp_path):
    run = run_tests(follow(TITLE, tmp_path, leave_out=(2,)), TESTS, "-k", "listed")
    assert run.returncode == 1 and "prior_samples" in run.stdout
