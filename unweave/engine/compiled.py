"""The fast engine: the same step as `loop.py`, recorded once, compiled, and on CUDA replayed as one graph.

`make_fx` records everything `loop.advance` does, data and noise included, and every player's gradients
and moves, as one list of tensor operations; Inductor compiles that list; a CUDA graph then launches the
whole step at once. There is no second implementation of a step to keep equal.
"""

from __future__ import annotations

import os
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, fx
from torch._inductor.exc import InductorError
from torch.fx.experimental.proxy_tensor import make_fx

try:
    import fcntl
except ImportError:  # not on Windows
    fcntl = None  # type: ignore[assignment]

from unweave.engine.fx_passes.bf16_weights import carry_bf16_weights, is_wide, refresh
from unweave.engine.fx_passes.float64_sums import exact_sums
from unweave.engine.fx_passes.transpose_matmul import transpose_matmuls
from unweave.engine.loop import StopFunction, TrainStep, train_step
from unweave.engine.program import Program, State

_WARM_UP = 3
# A step of these small networks has dozens of tiny independent kernels: fusing them sideways saves 6 % of its time.
# On some graphs torch 2.11 fails at that, on some of these only together with reordered loops.
_OPTIONS: list[dict[str, Any] | None] = [
    {"combo_kernels": True},
    {"combo_kernels": True, "loop_ordering_after_fusion": False},
    {},
]


def step_inputs(program: Program, state: State, sums: dict[str, Tensor]) -> tuple[list[Tensor], dict[int, int]]:
    """All tensors a recorded step reads and changes, and which of them is whose half (see `halves.py`)."""
    inputs = [*(t for _, t in state.tensors()), *sums.values(), *program.constants()]
    full = [n for n, (name, t) in enumerate(state.tensors()) if name.startswith("params/") and is_wide(t)]
    halves = {n: len(inputs) + k for k, n in enumerate(full)} if program.precision == "bf16" else {}
    return [*inputs, *(inputs[n].bfloat16() for n in halves)], halves


def recorded(
    program: Program, state: State, sums: dict[str, Tensor], train_step: TrainStep = train_step, *, exact: bool = False
) -> fx.GraphModule:
    """The step as a function of the list `step_inputs`, which it changes in place; `exact` is of its sums."""
    inputs, halves = step_inputs(program, state, sums)

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

    module = make_fx(step)(inputs)
    transpose_matmuls(module)
    if exact:
        exact_sums(module)
    carry_bf16_weights(module, halves)
    return module


@contextmanager
def autotune_lock(device: torch.device) -> Iterator[None]:
    """Waits while another process of this user chooses its kernels on the same CUDA device.

    They are chosen by timing them; timed beside another process, slow ones are chosen.
    """
    with ExitStack() as held:
        if device.type == "cuda" and fcntl is not None:
            which = getattr(torch.cuda.get_device_properties(device), "uuid", device.index or 0)
            path = Path(tempfile.gettempdir()) / f"unweave-{os.getuid()}-{which}.lock"
            with suppress(OSError):  # no such folder, or no locks on it: then not
                fcntl.flock(held.enter_context(path.open("w")), fcntl.LOCK_EX)
        yield


def inductor(module: fx.GraphModule, inputs: list[Tensor], options: dict[str, Any] | None = None) -> Callable:
    """A backend of torch.compile: Inductor, which compiles beside other processes and then has the device to itself.

    Kernels are compiled here, and chosen among when they first run.
    """
    from torch._inductor.compile_fx import compile_fx  # a second of imports that runs without it need not wait for

    compiled: Any = compile_fx(module, inputs, config_patches=options)
    device, chosen = inputs[0].device, False

    def step(*given: Tensor) -> Any:
        nonlocal chosen
        if chosen:
            return compiled(*given)
        with autotune_lock(device):
            result = compiled(*given)
            if device.type == "cuda":
                torch.cuda.synchronize(device)
        chosen = True
        return result

    return step


@contextmanager
def _no_arguments() -> Iterator[None]:
    """Inductor takes the word after --only on the command line, ours too, for a name and writes it into its program
    without escaping the quotes in it: it is not to see one."""
    kept, sys.argv = sys.argv, sys.argv[:1]
    try:
        yield
    finally:
        sys.argv = kept


class CompiledEngine:
    """Steps as one compiled program; on CUDA one captured graph."""

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
        self.inputs, halves = step_inputs(program, self.state, self.sums)
        module = recorded(program, self.state, self.sums, train_step, exact=exact)
        self.step = self._compiled(module, backend)
        self.replay = self._capture() if capture and program.seed.is_cuda else self._once
        # Recording and warming up are real steps on these tensors: put back what they changed.
        for (_, tensor), (_, value) in zip(self.state.tensors(), state.tensors(), strict=True):
            tensor.copy_(value)
        refresh(self.inputs, halves)

    def _compiled(self, module: Callable, backend: str) -> Callable:
        """The recorded step, compiled with the first options the compiler can do it with, and run once.

        With the backend "none", and where the compiler fails with all of them, it stays as it was recorded.
        """
        if backend == "none":
            return module
        compiler = inductor if backend == "inductor" else backend
        tried = _OPTIONS if self.program.seed.is_cuda and backend == "inductor" else [None]
        for options in tried:
            self.step = torch.compile(module, fullgraph=True, dynamic=False, backend=compiler, options=options)
            try:
                with _no_arguments():
                    self._once()
                return self.step
            except InductorError as error:
                failed = error
                torch._dynamo.reset()
        reason = str(failed).strip().partition("\n")[0]
        warnings.warn(f"torch could not compile this step, which is run slower, uncompiled: {reason}", stacklevel=2)
        self.step = module
        self._once()
        return module

    def _once(self) -> None:
        with torch.no_grad(), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            self.step(self.inputs)

    def _capture(self) -> Callable[[], None]:
        """One step as a CUDA graph, recorded after a few steps that let the kernels load and tune."""
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            for _ in range(_WARM_UP):
                self._once()
        torch.cuda.current_stream().wait_stream(side)
        self.graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self.graph):
            self._once()
        return self.graph.replay

    def start_sums(self) -> None:
        for total in self.sums.values():
            total.zero_()

    def advance(self, steps: int, stop: StopFunction | None = None) -> int:
        """Run `steps` training steps, or fewer if `stop` returns True after one of them; return how many."""
        for made in range(steps):
            if made and stop and stop():
                return made
            self.program.next_batches()
            self.replay()
        return steps

    def run(self, steps: int) -> dict[str, float]:
        """Run `steps` training steps and return the mean of each logged quantity."""
        self.start_sums()
        self.advance(steps)
        return {name: float(total) / steps for name, total in self.sums.items()}
