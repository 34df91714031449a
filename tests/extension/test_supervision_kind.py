"""The steps of CONTRIBUTING.md add a kind of supervision that the conformance table accepts."""

from contributing import follow, run_python, run_tests

TITLE, TESTS = "Add a supervision kind", "tests/conformance/test_supervision.py"


def test_the_documented_steps_are_sufficient(tmp_path):
    folder = follow(TITLE, tmp_path)
    run = run_tests(folder, TESTS, "-k", "frame_pairs", "-vv")
    assert run.returncode == 0, run.stdout + run.stderr
    assert "test_a_fleet_draws_the_batches_of_single_runs[frame_pairs]" in run.stdout
    call = "from unweave.data import explain, load_data; print(explain('frame_pairs', load_data('clips(size=8)')))"
    assert "Pairs of frames" in run_python(folder, "-c", call).stdout


def test_a_kind_without_a_page_fails(tmp_path):
    run = run_tests(follow(TITLE, tmp_path, leave_out=(3,)), TESTS, "-k", "frame_pairs and page")
    assert run.returncode == 1 and "frame_pairs.md" in run.stdout
