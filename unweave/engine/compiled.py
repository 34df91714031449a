"""The compiled engine: the step of `loop.py`, recorded once, compiled, and on CUDA replayed as one graph.

`make_fx` records everything that `loop.train_step` does as one list of tensor operations: data, noise, gradients and
updates of every player. Inductor compiles that list, and a CUDA graph launches the whole step at once. So there is no
second implementation of a step.
"""

import os
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, fx

from unweave.engine.fx_passes.bf16_weights import carry_bf16_weights, is_wide, update_copies
from unweave.engine.fx_passes.float64_sums import sum_in_float64
from unweave.engine.fx_passes.transpose_matmul import transpose_matmuls
from unweave.engine.loop import Engine, TrainStep, train_step
from unweave.engine.program import Program, State
from unweave.engine.torch_private import private_names
from unweave.errors import UserNotice
from unweave.runs.lock import lock

_WARM_UP = 3
_NOTICE_AFTER = 10.0  # seconds of waiting for another process
# A step of these small networks has dozens of tiny independent kernels; combining them saves 6 % of its time.
# Torch 2.11 fails to do so for some graphs, for some of them only if loops are also reordered.
_OPTIONS: list[dict[str, Any] | None] = [
    {"combo_kernels": True},
    {"combo_kernels": True, "loop_ordering_after_fusion": False},
    {},
]


def step_inputs(program: Program, state: State, sums: dict[str, Tensor]) -> tuple[list[Tensor], dict[int, int]]:
    """Return all tensors that a recorded step reads and changes.

    The second value maps the index of a float32 weight to that of its bfloat16 copy (see `fx_passes.bf16_weights`).
    """
    inputs = [*(t for _, t in state.tensors()), *sums.values(), *program.constants()]
    wide = [n for n, (name, t) in enumerate(state.tensors()) if name.startswith("params/") and is_wide(t)]
    copies = {n: len(inputs) + k for k, n in enumerate(wide)} if program.precision == "bf16" else {}
    return [*inputs, *(inputs[n].bfloat16() for n in copies)], copies


def record(
    program: Program, state: State, sums: dict[str, Tensor], train_step: TrainStep = train_step, *, exact: bool = False
) -> fx.GraphModule:
    """Return the step as a function that changes the list `step_inputs` in place; `exact` sums in float64."""
    inputs, copies = step_inputs(program, state, sums)

    def step(flat: list[Tensor]) -> tuple:
        values = iter(flat)
        before = state.filled(values)
        totals = {name: next(values) for name in sums}
        after, logs = train_step(program.with_constants(values), before)
        for (_, old), (_, new) in zip(before.tensors(), after.tensors(), strict=True):
            if old is not new:
                old.copy_(new)
        for name, total in totals.items():
            total.add_(logs[name])
        return ()

    module = private_names().make_fx(step)(inputs)
    transpose_matmuls(module)
    if exact:
        sum_in_float64(module)
    carry_bf16_weights(module, copies)
    return module


@contextmanager
def autotune_lock(device: torch.device) -> Iterator[None]:
    """Wait while another process of this user tunes kernels on the same CUDA device.

    Kernels are chosen by their measured time, and a second process on the device distorts the measurement.
    """
    with ExitStack() as stack:
        if device.type == "cuda" and hasattr(os, "getuid"):  # not on Windows
            name = getattr(torch.cuda.get_device_properties(device), "uuid", device.index or 0)
            path = Path(tempfile.gettempdir()) / f"unweave-{os.getuid()}-{name}.lock"
            with suppress(OSError):  # the folder is missing, the file is a link, or locks are not supported
                _enter_lock(stack, path, device)
        yield


def _enter_lock(stack: ExitStack, path: Path, device: torch.device) -> None:
    """Acquire the lock for the lifetime of the stack; say so once if that takes long."""
    notice_due = time.monotonic() + _NOTICE_AFTER
    while True:
        try:
            return stack.enter_context(lock(path, busy=_Busy))
        except _Busy as holder:
            if time.monotonic() >= notice_due:
                message = f"waiting for {holder}, which compiles a training step on {device}"
                warnings.warn(message, UserNotice, stacklevel=2)
                notice_due = float("inf")
            time.sleep(0.05)


class _Busy(Exception):
    """Another process holds the lock; the text describes it."""


def inductor(module: fx.GraphModule, inputs: list[Tensor], options: dict[str, Any] | None = None) -> Callable:
    """Backend of torch.compile: compile with Inductor, then tune the kernels at the first call, with the lock held."""
    compiled: Any = private_names().compile_fx(module, inputs, config_patches=options)
    device, tuned = inputs[0].device, False

    def step(*given: Tensor) -> Any:
        nonlocal tuned
        if tuned:
            return compiled(*given)
        with autotune_lock(device):
            result = compiled(*given)
            if device.type == "cuda":
                torch.cuda.synchronize(device)
        tuned = True
        return result

    return step


@contextmanager
def _without_arguments() -> Iterator[None]:
    """Hide the command line: Inductor writes the value of any `--only` into its program without escaping quotes."""
    kept, sys.argv = sys.argv, sys.argv[:1]
    try:
        yield
    finally:
        sys.argv = kept


class CompiledEngine(Engine):
    """Runs the training steps as one compiled program, on CUDA as one captured graph."""

    def __init__(
        self,
        program: Program,
        state: State,
        train_step: TrainStep = train_step,
        *,
        capture: bool = True,
        backend: str = "inductor",
        exact: bool = False,
    ) -> None:
        self.program, self.state = program, state.clone()
        _, logs = train_step(program, self.state)
        self.sums = {name: torch.zeros_like(value) for name, value in logs.items()}
        self.inputs, copies = step_inputs(program, self.state, self.sums)
        module = record(program, self.state, self.sums, train_step, exact=exact)
        self.step = self._compile(module, backend)
        self.step_once = self._capture() if capture and program.seed.is_cuda else self._run_once
        # Recording and warming up are real steps on these tensors: restore their values.
        for (_, tensor), (_, value) in zip(self.state.tensors(), state.tensors(), strict=True):
            tensor.copy_(value)
        update_copies(self.inputs, copies)

    def _compile(self, module: Callable, backend: str) -> Callable:
        """Compile the recorded step with the first options that work, and run it once.

        If the backend is "none" or no options work, the step is run as recorded.
        """
        if backend == "none":
            return module
        compiler = inductor if backend == "inductor" else backend
        options_list = _OPTIONS if self.program.seed.is_cuda and backend == "inductor" else [None]
        for options in options_list:
            self.step = torch.compile(module, fullgraph=True, dynamic=False, backend=compiler, options=options)
            try:
                with _without_arguments():
                    self._run_once()
                return self.step
            except private_names().InductorError as error:
                failure = error
                torch.compiler.reset()
        reason = str(failure).strip().partition("\n")[0]
        message = f"torch could not compile the training step, which is slower uncompiled: {reason}"
        warnings.warn(message, UserNotice, stacklevel=2)
        self.step = module
        self._run_once()
        return module

    def _run_once(self) -> None:
        with torch.no_grad(), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            warnings.simplefilter("always", UserNotice)
            self.step(self.inputs)

    def _capture(self) -> Callable[[], None]:
        """Capture one step as a CUDA graph, after a few steps in which kernels are loaded and tuned."""
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            for _ in range(_WARM_UP):
                self._run_once()
        torch.cuda.current_stream().wait_stream(side)
        self.graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self.graph):
            self._run_once()
        return self.graph.replay

    def start_sums(self) -> None:
        for total in self.sums.values():
            total.zero_()
