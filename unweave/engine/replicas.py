"""Many runs of one shape, stepping together.

A fleet is a Program and a State whose tensors have a leading replica axis: every replica has its own seed, noise,
data order, hyper-parameters, schedules, learning rate, clipping and optimizer memory. The step is `loop.advance`
itself, with the method mapped over the replicas, so run k among many is run k alone, to float error.

A replica moves while its step is below its own last one and all it logs is finite; after that its state stays as
it is, whatever its neighbours do.

Shape letters: R replicas.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from typing import NamedTuple, Protocol

import torch
from torch import Tensor
from torch.func import vmap

from unweave.contract import Out
from unweave.engine.compiled import CompiledEngine
from unweave.engine.loop import LoopEngine, StopFunction, TrainStep, compute_losses, train_step
from unweave.engine.optim import Moments
from unweave.engine.program import Program, State
from unweave.nn.conv import conv_implementation
from unweave.ops.no_fuse import no_fuse

STRATEGIES = ("loop", "batched")


class Progressed(NamedTuple):
    """Where one replica stands after a call, and the mean of each logged quantity over the steps of its record."""

    step: int
    moved: int  # steps made in this call
    logs: dict[str, float]
    diverged: bool


class Fleet(Protocol):
    """Replicas that train together.

    A record is the run of steps over which logged quantities are averaged; `fresh` names the replicas whose record
    starts with this call (None: all). `sums` and `restore_sums` carry an unfinished record into a checkpoint and back.
    """

    def run(
        self, steps: int, *, stop: StopFunction | None = None, fresh: Collection[int] | None = None
    ) -> list[Progressed]: ...

    def states(self) -> list[State]: ...

    def sums(self, k: int) -> dict[str, Tensor]: ...

    def restore_sums(self, k: int, sums: dict[str, Tensor], first_step: int) -> None: ...


def stack_programs(programs: Sequence[Program]) -> Program:
    """One program of R replicas."""
    first = programs[0]
    for player in first.optimizers:
        mine = [p.optimizers[player] for p in programs]
        if len({(o.betas, o.eps, o.momentum, o.clip is None) for o in mine}) > 1:
            raise ValueError("replicas of a fleet share betas, eps and momentum, and all clip or none does")
    columns = zip(*(p.constants() for p in programs), strict=True)
    return first.with_constants(torch.stack(column) for column in columns)


def stack_states(states: Sequence[State]) -> State:
    """One state of R replicas."""
    first = states[0]

    def memory(player: str) -> Moments:
        mine = [s.moments[player] for s in states]
        columns = [[torch.stack(t) for t in zip(*(getattr(m, n) for m in mine))] for n in ("mean", "square")]
        return Moments(columns[0], columns[1], torch.stack([m.updates for m in mine]))

    return State(
        {n: torch.stack([s.params[n] for s in states]) for n in first.params},
        {n: torch.stack([s.buffers[n] for s in states]) for n in first.buffers},
        {player: memory(player) for player in first.moments},
        torch.stack([s.step for s in states]),
    )


def replica_state(state: State, k: int) -> State:
    """The state of replica k, as views."""
    return State(
        {n: t[k] for n, t in state.params.items()},
        {n: t[k] for n, t in state.buffers.items()},
        {p: Moments([t[k] for t in m.mean], [t[k] for t in m.square], m.updates[k]) for p, m in state.moments.items()},
        state.step[k],
    )


def compute_losses_vmapped(program: Program, state: State, phase: int) -> Out:
    """`loop.play` of every replica: each entry of the Out has a leading replica axis."""

    def one(params: dict[str, Tensor], buffers: dict[str, Tensor], step: Tensor, own: list[Tensor]) -> Out:
        return compute_losses(program.with_constants(iter(own)), State(params, buffers, {}, step), phase)

    return vmap(one)(state.params, state.buffers, state.step, program.constants())


def train_step_vmapped(program: Program, state: State) -> tuple[State, dict[str, Tensor]]:
    """`loop.advance` of every replica."""
    return train_step(program, state, compute_losses_vmapped)


def freeze_finished(train_step: TrainStep) -> TrainStep:
    """The step for those that still move and log finite numbers; the others keep their state and log zero."""

    def step(program: Program, state: State) -> tuple[State, dict[str, Tensor]]:
        after, logs = train_step(program, state)
        moves = state.step < program.max_step  # type: ignore[operator]
        for value in logs.values():
            moves = moves & value.isfinite()
        moves = no_fuse(moves)
        pairs = zip(state.tensors(), after.tensors(), strict=True)
        kept = (_where(moves, new, old) for (_, old), (_, new) in pairs)
        return state.filled(kept), {name: torch.where(moves, value, 0.0) for name, value in logs.items()}

    return step


def _where(moves: Tensor, new: Tensor, old: Tensor) -> Tensor:
    if new is old:
        return old
    return torch.where(moves.reshape(moves.shape + (1,) * (new.dim() - moves.dim())), new, old)


class BatchedFleet:
    """All replicas in one vmapped step, with the convolutions of `ops.fleet_conv`.

    In float32 a single run is trained next to a copy of itself, because libraries multiply one matrix in another order
    than several, and sums are exact (see `fx_passes.float64_sums`): its numbers do not depend on its neighbours.
    """

    def __init__(self, programs: Sequence[Program], states: Sequence[State], engine: str) -> None:
        self.replicas, full = len(programs), programs[0].precision == "float32"
        if self.replicas == 1 and full:
            programs, states = [*programs] * 2, [*states] * 2
        program, state = stack_programs(programs), stack_states(states)

        def step(program: Program, state: State) -> tuple[State, dict[str, Tensor]]:
            with conv_implementation("fleet"):
                return freeze_finished(train_step_vmapped)(program, state)

        if engine == "loop":
            self.engine: LoopEngine | CompiledEngine = LoopEngine(program, state, step)
        else:
            backend = "none" if engine == "traced" else "inductor"
            self.engine = CompiledEngine(program, state, step, capture=engine == "graph", backend=backend, exact=full)

        self.last_steps = [int(p.max_step) for p in programs]  # type: ignore[arg-type]
        self.first_steps = [0] * self.replicas

    def run(
        self, steps: int, *, stop: StopFunction | None = None, fresh: Collection[int] | None = None
    ) -> list[Progressed]:
        before = self.engine.state.step.tolist()
        if fresh is None or len(fresh) == self.replicas:
            self.engine.start_sums()
        elif fresh:
            for total in self.engine.sums.values():
                total[list(fresh)] = 0.0
        for k in range(self.replicas) if fresh is None else fresh:
            self.first_steps[k] = before[k]
        ran = _count_steps(self.engine, steps, stop)
        sums = {name: total.tolist() for name, total in self.engine.sums.items()}
        after = self.engine.state.step.tolist()
        return [
            _progressed(
                before[k],
                after[k],
                min(ran, self.last_steps[k] - before[k]),
                self.first_steps[k],
                {name: values[k] for name, values in sums.items()},
            )
            for k in range(self.replicas)
        ]

    def states(self) -> list[State]:
        return [replica_state(self.engine.state, k) for k in range(self.replicas)]

    def sums(self, k: int) -> dict[str, Tensor]:
        return {name: total[k] for name, total in self.engine.sums.items()}

    def restore_sums(self, k: int, sums: dict[str, Tensor], first_step: int) -> None:
        step = self.engine.state.step
        for name, value in sums.items():
            self.engine.sums.setdefault(name, torch.zeros(step.shape, device=step.device))[k] = value
        self.first_steps[k] = first_step


def _count_steps(engine: LoopEngine | CompiledEngine, steps: int, stop: StopFunction | None) -> int:
    """Advance the engine and return how many steps it made before it was stopped."""
    ran = steps

    def stopped() -> bool:
        nonlocal ran
        assert stop is not None
        if stop():
            ran = called[0]
            return True
        called[0] += 1
        return False

    called = [0]
    engine.advance(steps, stopped if stop else None)
    return ran


def _progressed(before: int, after: int, due: int, first: int, sums: dict[str, float]) -> Progressed:
    made = after - first
    logs = {name: total / made for name, total in sums.items()} if made > 0 else {}
    return Progressed(after, after - before, logs, after - before < due)


class LoopFleet:
    """One engine per replica, run one after the other.

    With `freeze` a replica that diverges keeps its last finite state. Without, the training step is the plain one, and
    a replica whose logged quantities are not finite has diverged during the call.
    """

    def __init__(
        self, programs: Sequence[Program], states: Sequence[State], engine: str, *, freeze: bool = True
    ) -> None:
        step = freeze_finished(train_step) if freeze else train_step
        self.engines: list[LoopEngine | CompiledEngine] = [
            LoopEngine(p, s, step) if engine == "loop" else CompiledEngine(p, s, step, capture=engine == "graph")
            for p, s in zip(programs, states, strict=True)
        ]
        self.last_steps = [int(p.max_step) for p in programs]  # type: ignore[arg-type]
        self.first_steps = [0] * len(programs)

    def run(
        self, steps: int, *, stop: StopFunction | None = None, fresh: Collection[int] | None = None
    ) -> list[Progressed]:
        done = []
        for k, engine in enumerate(self.engines):
            before = int(engine.state.step)
            if fresh is None or k in fresh:
                engine.start_sums()
                self.first_steps[k] = before
            ran = _count_steps(engine, steps, stop)
            sums = {name: float(total) for name, total in engine.sums.items()}
            due, after = min(ran, self.last_steps[k] - before), int(engine.state.step)
            progressed = _progressed(before, after, due, self.first_steps[k], sums)
            broken = not all(map(math.isfinite, sums.values()))
            done.append(progressed._replace(diverged=progressed.diverged or broken))
        return done

    def states(self) -> list[State]:
        return [engine.state for engine in self.engines]

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


def make_fleet(programs: Sequence[Program], states: Sequence[State], *, strategy: str, engine: str) -> Fleet:
    """Return the fleet of these runs; each program has its own `max_step`.

    `engine` is loop, compiled or graph; or traced: the operations that would be compiled, run one after the other.
    A fleet of one run with the strategy "loop" uses the plain training step.
    """
    if strategy == "loop":
        return LoopFleet(programs, states, engine, freeze=len(programs) > 1)
    return BatchedFleet(programs, states, engine)
