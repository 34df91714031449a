"""Property: after any history of a run, its results equal a computation from scratch, or an error names what changed.

2,000 histories: `python benchmarks/reliability/histories.py`.
"""

import histories
import pytest
from histories import SHARED, Violation, play
from scratch_runs import Scratch, random_problem

COUNT, PARTS = 100, 4


@pytest.mark.parametrize("part", range(PARTS))
def test_histories_end_as_from_scratch_or_name_what_changed(part, tmp_path):
    size = COUNT // PARTS
    outcomes, scratch = [], {}
    for seed in range(part * size, (part + 1) * size):
        number = seed // SHARED
        if number not in scratch:
            scratch[number] = Scratch(random_problem(number), tmp_path / f"scratch{number}")
        (folder := tmp_path / str(seed)).mkdir()
        outcomes += play(seed, folder, scratch[number]).outcomes
    equal = sum(outcome.endswith("equal") for outcome in outcomes)
    assert equal > size and len(outcomes) - equal > size // 4, "too few steps were compared"


def test_a_result_that_differs_is_noticed(tmp_path, monkeypatch):
    """The histories are played with a program that loses the last record of each log."""
    original = histories.weights_and_log

    def without_last_record(run):
        return (found := original(run)) | {"log": found["log"][:-1]}

    monkeypatch.setattr(histories, "weights_and_log", without_last_record)
    with pytest.raises(Violation, match="log"):
        for seed in range(3, 10):
            (folder := tmp_path / str(seed)).mkdir()
            play(seed, folder)
