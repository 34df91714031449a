"""The compiled engine and its compiler: fallbacks, the autotuning lock and the command line."""

import os
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager
from types import SimpleNamespace

import pytest
import torch
from mentions import mentions
from toys import TwoPhases, program

from unweave.engine import compiled
from unweave.engine.compiled import CompiledEngine, autotune_lock, inductor
from unweave.engine.loop import LoopEngine
from unweave.engine.program import initial_state
from unweave.engine.torch_private import private_names


def test_a_step_that_does_not_compile_runs_as_recorded(monkeypatch):
    def fail(*_, **__):
        raise private_names().InductorError(RuntimeError("Failed to import a.py\nSyntaxError"), None)

    monkeypatch.setattr(torch, "compile", lambda *_, **__: fail)
    method = TwoPhases()
    with pytest.warns(UserWarning, match=r"Failed to import a\.py$"):
        graph = CompiledEngine(program(method), initial_state(method))
    loop = LoopEngine(program(method), initial_state(method))
    assert graph.run(5) == pytest.approx(loop.run(5))
    assert graph.state.params["a"] == pytest.approx(loop.state.params["a"])


LOCK = f"unweave-{os.getuid()}-one.lock"
OTHER_PROCESS = """
import fcntl, json, os, sys, time
with open(sys.argv[1], "w") as file:
    fcntl.flock(file, fcntl.LOCK_EX)
    print(json.dumps({"process": os.getpid(), "host": "here"}), file=file, flush=True)
    print("locked", flush=True)
    if sys.argv[2:]:
        time.sleep(float(sys.argv[2]))
    else:
        sys.stdin.read()
"""


def use_folder(monkeypatch, folder):
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda _: SimpleNamespace(uuid="one"))
    monkeypatch.setattr(tempfile, "gettempdir", lambda: str(folder))


def test_one_process_at_a_time_tunes_kernels_on_a_device(monkeypatch, tmp_path):
    """A missing folder for the lock is not an error."""
    device = torch.device("cuda", 0)
    use_folder(monkeypatch, tmp_path)
    command = [sys.executable, "-c", OTHER_PROCESS, str(tmp_path / LOCK), "0.5"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as other:
        assert other.stdout.readline() == "locked\n"
        start = time.monotonic()
        with autotune_lock(device):
            assert time.monotonic() - start > 0.3
    use_folder(monkeypatch, tmp_path / "missing")
    with autotune_lock(device):
        pass


def test_a_long_wait_for_the_lock_names_its_holder(monkeypatch, tmp_path):
    use_folder(monkeypatch, tmp_path)
    monkeypatch.setattr(compiled, "_NOTICE_AFTER", 0.0)
    command = [sys.executable, "-c", OTHER_PROCESS, str(tmp_path / LOCK)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as other:
        assert other.stdout.readline() == "locked\n"
        notices = []

        def release(message, *_, **__):
            notices.append(str(message))
            other.stdin.close()

        monkeypatch.setattr(compiled.warnings, "warn", release)
        with autotune_lock(torch.device("cuda", 0)):
            pass
    assert len(notices) == 1 and mentions(notices[0], f"process {other.pid}", "cuda:0")


def test_the_lock_does_not_follow_links(monkeypatch, tmp_path):
    use_folder(monkeypatch, tmp_path)
    (tmp_path / "precious").write_text("data")
    (tmp_path / LOCK).symlink_to(tmp_path / "precious")
    with autotune_lock(torch.device("cuda", 0)):
        pass
    assert (tmp_path / "precious").read_text() == "data"


def test_the_lock_is_held_during_the_first_call_only(monkeypatch):
    """Compiling takes most of a minute and does not use the device, so processes may compile at the same time."""
    events = []

    @contextmanager
    def lock(device):
        events.append(f"lock {device}")
        yield
        events.append("unlock")

    def compile_fx(module, inputs, config_patches):
        events.append(f"compile with {config_patches}")
        return lambda *given: events.append("run") or module(*given)

    monkeypatch.setattr(compiled, "autotune_lock", lock)
    monkeypatch.setattr(compiled, "private_names", lambda: SimpleNamespace(compile_fx=compile_fx))
    step = inductor(torch.fx.symbolic_trace(lambda x: x + 1), [torch.zeros(2)], {"combo_kernels": True})
    assert [step(torch.ones(2)).tolist() for _ in range(2)] == [[2.0, 2.0]] * 2
    assert events == ["compile with {'combo_kernels': True}", "lock cpu", "run", "unlock", "run"]


def test_the_compiler_does_not_see_the_command_line(monkeypatch):
    """Inductor writes the value of --only into its program without escaping quotes."""
    words, seen = ["unweave", "study", "run", "--only", "supervision=pairs(k='uniform')"], []

    def compile_step(module, **_):
        def step(flat):
            seen.append(list(sys.argv))
            return module(flat)

        return step

    monkeypatch.setattr(sys, "argv", words)
    monkeypatch.setattr(torch, "compile", compile_step)
    method = TwoPhases()
    CompiledEngine(program(method), initial_state(method))
    assert seen[0] == ["unweave"]
    assert sys.argv == words
