"""Train many runs of equal shapes together, as replicas of one step.

A fleet is a Program and a State whose tensors have a leading replica axis: every replica has its own seed, noise,
data order, hyperparameters, schedules, learning rate, clipping and optimizer state. The step is `loop.train_step`
itself, with the method mapped over the replicas, so run k of a fleet equals run k alone up to float rounding.

A replica is updated while its step is below its last step and all its logged quantities are finite; after that its
state does not change.

Shape letters: R replicas.
"""

import math
import warnings
from collections.abc import Collection, Sequence
from functools import partial
from typing import NamedTuple

import torch
from torch import Tensor
from torch.func import vmap

from unweave.contract import Out
from unweave.engine.compiled import CompiledEngine
from unweave.engine.loop import Engine, LoopEngine, StopFunction, TrainStep, compute_losses, train_step
from unweave.engine.optim import broadcast
from unweave.engine.program import Program, State
from unweave.engine.torch_private import missing_name
from unweave.errors import UserNotice
from unweave.nn.conv import conv_implementation
from unweave.ops.no_fuse import no_fuse

STRATEGIES = ("loop", "batched")


class ReplicaProgress(NamedTuple):
    """Position of one replica after a call, and the mean of each logged quantity over the steps of its record."""

    step: int
    steps_done: int  # steps made in this call
    logs: dict[str, float]
    diverged: bool


def stack_programs(programs: Sequence[Program]) -> Program:
    """Stack the programs of R replicas into one."""
    first = programs[0]
    for player in first.optimizers:
        mine = [p.optimizers[player] for p in programs]
        if len({(o.betas, o.eps, o.momentum, o.clip is None) for o in mine}) > 1:
            raise ValueError("replicas of a fleet share betas, eps and momentum, and all clip or none does")
    columns = zip(*(p.constants() for p in programs), strict=True)
    return first.with_constants(torch.stack(column) for column in columns)


def compute_losses_vmapped(program: Program, state: State, phase: int) -> Out:
    """Return `loop.compute_losses` of every replica: each entry of the Out has a leading replica axis."""

    def one(params: dict[str, Tensor], buffers: dict[str, Tensor], step: Tensor, own: list[Tensor]) -> Out:
        return compute_losses(program.with_constants(iter(own)), State(params, buffers, {}, step), phase)

    return vmap(one)(state.params, state.buffers, state.step, program.constants())


def freeze_finished(train_step: TrainStep) -> TrainStep:
    """Return a step that updates unfinished replicas with finite logs; the others keep their state and log zero."""

    def step(program: Program, state: State) -> tuple[State, dict[str, Tensor]]:
        after, logs = train_step(program, state)
        changes = state.step < program.max_step  # type: ignore[operator]
        for value in logs.values():
            changes = changes & value.isfinite()
        changes = no_fuse(changes)
        pairs = zip(state.tensors(), after.tensors(), strict=True)
        kept = (old if new is old else torch.where(broadcast(changes, new), new, old) for (_, old), (_, new) in pairs)
        return state.filled(kept), {name: torch.where(changes, value, 0.0) for name, value in logs.items()}

    return step


# A record is the steps over which logged quantities are averaged. `new_records` in `run` are the replicas whose record
# starts with this call (None: all). `sums` and `restore_sums` save an unfinished record in a checkpoint and restore it.
# A fleet that `freezes` keeps the last finite state of a replica that diverges.


class BatchedFleet:
    """All replicas in one vmapped step, with the convolutions of `ops.fleet_conv`.

    In float32 a single run is trained next to a copy of itself, because libraries multiply one matrix in another order
    than several, and sums are exact (see `fx_passes.float64_sums`): its numbers do not depend on its neighbours.
    """

    def __init__(self, programs: Sequence[Program], states: Sequence[State], engine: str) -> None:
        self.replicas, full = len(programs), programs[0].precision == "float32"
        if self.replicas == 1 and full:
            programs, states = [*programs] * 2, [*states] * 2
        columns = zip(*((t for _, t in state.tensors()) for state in states), strict=True)
        program, state = stack_programs(programs), states[0].filled(torch.stack(column) for column in columns)
        vmapped = freeze_finished(partial(train_step, compute_losses=compute_losses_vmapped))

        def step(program: Program, state: State) -> tuple[State, dict[str, Tensor]]:
            with conv_implementation("fleet"):
                return vmapped(program, state)

        if engine == "loop":
            self.engine: Engine = LoopEngine(program, state, step)
        else:
            backend = "none" if engine == "traced" else "inductor"
            self.engine = CompiledEngine(program, state, step, capture=engine == "graph", backend=backend, exact=full)

        self.last_steps = [int(p.max_step) for p in programs]  # type: ignore[arg-type]
        self.first_steps, self.freezes = [0] * self.replicas, True

    def run(
        self, steps: int, *, stop: StopFunction | None = None, new_records: Collection[int] | None = None
    ) -> list[ReplicaProgress]:
        before = self.engine.state.step.tolist()
        if new_records is None or len(new_records) == self.replicas:
            self.engine.start_sums()
        elif new_records:
            for total in self.engine.sums.values():
                total[list(new_records)] = 0.0
        for k in range(self.replicas) if new_records is None else new_records:
            self.first_steps[k] = before[k]
        ran = self.engine.run_steps(steps, stop)
        sums = {name: total.tolist() for name, total in self.engine.sums.items()}
        after = self.engine.state.step.tolist()
        return [
            _progress(before[k], after[k], min(ran, last - before[k]), first, {n: sums[n][k] for n in sums})
            for k, (first, last) in enumerate(zip(self.first_steps, self.last_steps[: self.replicas], strict=True))
        ]

    def states(self) -> list[State]:
        """Return the state of each replica, as views."""
        state = self.engine.state
        return [state.filled(t[k] for _, t in state.tensors()) for k in range(self.replicas)]

    def finite(self, unchecked: Collection[str]) -> list[bool]:
        """Return for each replica whether its state is finite, apart from the quantities of these names."""
        finite = self.engine.state.finite(unchecked, axis=1)
        return torch.stack(list(finite.values())).all(0).tolist()[: self.replicas]

    def sums(self, k: int) -> dict[str, Tensor]:
        return {name: total[k] for name, total in self.engine.sums.items()}

    def restore_sums(self, k: int, sums: dict[str, Tensor], first_step: int) -> None:
        step = self.engine.state.step
        for name, value in sums.items():
            self.engine.sums.setdefault(name, torch.zeros(step.shape, device=step.device))[k] = value
        self.first_steps[k] = first_step


def _progress(before: int, after: int, due: int, first: int, sums: dict[str, float]) -> ReplicaProgress:
    made = after - first
    logs = {name: total / made for name, total in sums.items()} if made > 0 else {}
    return ReplicaProgress(after, after - before, logs, after - before < due)


class LoopFleet:
    """One engine per replica, run one after the other.

    With `freeze` a replica that diverges keeps its last finite state. Without, the training step is the plain one, and
    a replica whose logged quantities are not finite has diverged during the call.
    """

    def __init__(
        self, programs: Sequence[Program], states: Sequence[State], engine: str, *, freeze: bool = True
    ) -> None:
        step = freeze_finished(train_step) if freeze else train_step
        self.engines = [make_engine(p, s, engine, step) for p, s in zip(programs, states, strict=True)]
        self.last_steps = [int(p.max_step) for p in programs]  # type: ignore[arg-type]
        self.first_steps, self.freezes = [0] * len(programs), freeze

    def run(
        self, steps: int, *, stop: StopFunction | None = None, new_records: Collection[int] | None = None
    ) -> list[ReplicaProgress]:
        done = []
        for k, engine in enumerate(self.engines):
            before = int(engine.state.step)
            if new_records is None or k in new_records:
                engine.start_sums()
                self.first_steps[k] = before
            ran = engine.run_steps(max(0, min(steps, self.last_steps[k] - before)), stop)
            sums = {name: float(total) for name, total in engine.sums.items()}
            progressed = _progress(before, int(engine.state.step), ran, self.first_steps[k], sums)
            broken = not all(map(math.isfinite, sums.values()))
            done.append(progressed._replace(diverged=progressed.diverged or broken))
        return done

    def states(self) -> list[State]:
        return [engine.state for engine in self.engines]

    def finite(self, unchecked: Collection[str]) -> list[bool]:
        return [not engine.state.not_finite(unchecked) for engine in self.engines]

    def sums(self, k: int) -> dict[str, Tensor]:
        return self.engines[k].sums

    def restore_sums(self, k: int, sums: dict[str, Tensor], first_step: int) -> None:
        engine = self.engines[k]
        device = engine.state.step.device
        if isinstance(engine, CompiledEngine):
            for name, value in sums.items():
                engine.sums[name].copy_(value)
        else:
            engine.sums = {name: value.to(device) for name, value in sums.items()}
        self.first_steps[k] = first_step


Fleet = BatchedFleet | LoopFleet


def resolve_engine(engine: str, device: torch.device | str) -> str:
    """Return the engine to use: "auto" is the captured graph on CUDA and the loop elsewhere.

    If torch lacks a name that the compiled engines need, it is the loop, with a notice.
    """
    if engine == "auto":
        engine = "graph" if torch.device(device).type == "cuda" else "loop"
    if engine != "loop" and (reason := missing_name()):
        message = f"engine '{engine}' is not available with torch {torch.__version__} ({reason}); using 'loop'"
        warnings.warn(message, UserNotice, stacklevel=2)
        return "loop"
    return engine


def make_engine(program: Program, state: State, engine: str = "auto", step: TrainStep = train_step) -> Engine:
    """Return the engine that trains one run; `engine` is auto, loop, compiled or graph."""
    engine = resolve_engine(engine, program.seed.device)
    if engine == "loop":
        return LoopEngine(program, state, step)
    return CompiledEngine(program, state, step, capture=engine == "graph")


def make_fleet(programs: Sequence[Program], states: Sequence[State], *, strategy: str, engine: str) -> Fleet:
    """Return the fleet of these runs; each program has its own `max_step`.

    `engine` is loop, compiled or graph; or traced: the operations that would be compiled, run one after the other.
    A fleet of one run with the strategy "loop" uses the plain training step.
    """
    if strategy == "loop":
        return LoopFleet(programs, states, engine, freeze=len(programs) > 1)
    return BatchedFleet(programs, states, engine)
