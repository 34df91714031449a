import io
import sys

import pytest

from unweave.data.storage.progress import observe_progress, progress_task


def test_the_observer_is_called():
    seen = []
    with observe_progress(lambda *call: seen.append(call)), progress_task("folding", 3, "") as step:
        step(1)
        step(3)
    assert seen == [("folding", 1, 3), ("folding", 3, 3)]


@pytest.mark.parametrize("terminal", [True, False])
def test_a_bar_is_drawn_on_a_terminal_only(monkeypatch, terminal):
    screen = io.StringIO()
    screen.isatty = lambda: terminal
    monkeypatch.setattr(sys, "stderr", screen)
    with progress_task("folding", 10, "") as step:
        step(5)
        step(10)
    assert ("folding" in screen.getvalue()) == terminal and (terminal or not screen.getvalue())
