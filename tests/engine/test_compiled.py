"""The compiled engine beside its compiler: what it is shown, when it must wait, and what is done where it fails."""

import os
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager
from types import SimpleNamespace

import pytest
import torch
from torch._inductor.exc import InductorError
from toys import TwoPhases, program

from unweave.engine import compiled as engine
from unweave.engine.compiled import CompiledEngine, autotune_lock, inductor
from unweave.engine.loop import LoopEngine
from unweave.engine.program import initial_state


def test_a_step_the_compiler_fails_at_is_run_as_recorded(monkeypatch):
    def fails(*_, **__):
        raise InductorError(RuntimeError("Failed to import a.py\nSyntaxError"), None)

    monkeypatch.setattr(torch, "compile", lambda *_, **__: fails)
    method = TwoPhases()
    with pytest.warns(UserWarning, match=r"could not compile this step.*Failed to import a\.py$"):
        graph = CompiledEngine(program(method), initial_state(method))
    loop = LoopEngine(program(method), initial_state(method))
    assert graph.run(5) == pytest.approx(loop.run(5))
    assert graph.state.params["a"] == pytest.approx(loop.state.params["a"])


OTHER = """
import fcntl, sys, time
with open(sys.argv[1], "w") as file:
    fcntl.flock(file, fcntl.LOCK_EX)
    print("held", flush=True)
    time.sleep(0.5)
"""


def test_one_process_chooses_kernels_at_a_time_on_a_device(monkeypatch, tmp_path):
    """Another that holds the device's lock is waited for; a folder without locks is no reason to stop."""
    device = torch.device("cuda", 0)
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda _: SimpleNamespace(uuid="one"))
    monkeypatch.setattr(tempfile, "gettempdir", lambda: str(tmp_path))
    command = [sys.executable, "-c", OTHER, str(tmp_path / f"unweave-{os.getuid()}-one.lock")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as other:
        assert other.stdout.readline() == "held\n"
        begun = time.monotonic()
        with autotune_lock(device):
            assert time.monotonic() - begun > 0.3
    monkeypatch.setattr(tempfile, "gettempdir", lambda: str(tmp_path / "missing"))
    with autotune_lock(device):
        pass


def test_processes_compile_beside_each_other_and_wait_for_the_first_run_alone(monkeypatch):
    """Compiling takes most of a minute and no device: programs that did it in turns would wait for each other."""
    said = []

    @contextmanager
    def waits(device):
        said.append(f"waits for {device}")
        yield
        said.append("lets go")

    def compiles(module, inputs, config_patches):
        said.append(f"compiles with {config_patches}")
        return lambda *given: said.append("runs") or module(*given)

    monkeypatch.setattr(engine, "autotune_lock", waits)
    monkeypatch.setitem(sys.modules, "torch._inductor.compile_fx", SimpleNamespace(compile_fx=compiles))
    step = inductor(torch.fx.symbolic_trace(lambda x: x + 1), [torch.zeros(2)], {"combo_kernels": True})
    assert [step(torch.ones(2)).tolist() for _ in range(2)] == [[2.0, 2.0]] * 2
    assert said == ["compiles with {'combo_kernels': True}", "waits for cpu", "runs", "lets go", "runs"]


def test_the_compiler_does_not_see_the_command_line(monkeypatch):
    """Inductor writes the word after --only into its program as it stands, quotes and all."""
    told, seen = ["unweave", "study", "run", "--only", "supervision=pairs(k='uniform')"], []

    def compiled(module, **_):
        def step(flat):
            seen.append(list(sys.argv))
            return module(flat)

        return step

    monkeypatch.setattr(sys, "argv", told)
    monkeypatch.setattr(torch, "compile", compiled)
    method = TwoPhases()
    CompiledEngine(program(method), initial_state(method))
    assert seen[0] == ["unweave"]
    assert sys.argv == told
