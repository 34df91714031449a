"""What is fixed during a run (Program) and what changes with every step (State)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

import torch
from torch import Tensor

from unweave.contract import Batch, Method, Noise, player_parameters
from unweave.engine.optim import Moments, Optimizer
from unweave.ops.noise import fold, random_normal, random_uniform
from unweave.ops.schedules import linear

Schedule = float | tuple[float, float, float, float]  # a constant, or (start, end, steps, begin)


class Program(NamedTuple):
    """A run's constants. Tensors in here may differ between replicas; the rest shapes the step."""

    method: Method
    sample: Callable[..., Batch]  # (key, batch size[, the run's own seed])
    batch: int
    seed: Tensor
    hyper: Tensor  # one schedule row per field of method.Hyper
    optimizers: Mapping[str, Optimizer]
    parameter_names: Mapping[str, list[str]]  # the parameters each player moves
    precision: str = "float32"  # "float32", "tf32" or "bf16"
    max_step: Tensor | None = None  # the step after which nothing moves
    run: Tensor | None = None  # the run's own seed in every stage: it says which observations are labelled

    def constants(self) -> list[Tensor]:
        """Every tensor a replica may have a value of its own for, in a fixed order."""
        rates = [t for o in self.optimizers.values() for t in (o.lr, o.clip)]
        return [t for t in (self.seed, self.hyper, *rates, self.max_step, self.run) if t is not None]

    def next_batches(self) -> None:
        """Before every step: a sampler whose batches come from the host puts them in place."""
        if ahead := getattr(self.sample, "load_next", None):
            ahead()

    def with_constants(self, values: Iterator[Tensor]) -> Program:
        """The same program with other constants, from an iterator in the order of `constants`."""
        seed, hyper = next(values), next(values)
        optimizers = {
            player: own._replace(lr=next(values), clip=None if own.clip is None else next(values))
            for player, own in self.optimizers.items()
        }
        max_step = None if self.max_step is None else next(values)
        run = None if self.run is None else next(values)
        return self._replace(seed=seed, hyper=hyper, optimizers=optimizers, max_step=max_step, run=run)


class State(NamedTuple):
    """Everything a step changes, and so everything a checkpoint holds."""

    params: dict[str, Tensor]
    buffers: dict[str, Tensor]
    moments: dict[str, Moments]
    step: Tensor

    def tensors(self) -> Iterator[tuple[str, Tensor]]:
        """Every tensor with a name that says where it lives, in a fixed order."""
        yield "step", self.step
        yield from ((f"params/{n}", t) for n, t in self.params.items())
        yield from ((f"buffers/{n}", t) for n, t in self.buffers.items())
        for player, memory in self.moments.items():
            yield f"updates/{player}", memory.updates
            yield from ((f"mean/{player}/{i}", t) for i, t in enumerate(memory.mean))
            yield from ((f"square/{player}/{i}", t) for i, t in enumerate(memory.square))

    def filled(self, values: Iterator[Tensor]) -> State:
        """A State of the same form, filled from an iterator in the order of `tensors`."""
        step = next(values)
        params = {n: next(values) for n in self.params}
        buffers = {n: next(values) for n in self.buffers}
        moments = {}
        for player, memory in self.moments.items():
            updates = next(values)
            mean = [next(values) for _ in memory.mean]
            moments[player] = memory._replace(updates=updates, mean=mean, square=[next(values) for _ in memory.square])
        return State(params, buffers, moments, step)

    def clone(self) -> State:
        return State(
            {n: t.clone() for n, t in self.params.items()},
            {n: t.clone() for n, t in self.buffers.items()},
            {
                p: Moments([t.clone() for t in m.mean], [t.clone() for t in m.square], m.updates.clone())
                for p, m in self.moments.items()
            },
            self.step.clone(),
        )


def schedule_row(value: Schedule, device: torch.device | str = "cpu") -> Tensor:
    """(start, end, steps, begin); a constant starts where it ends."""
    row = value if isinstance(value, tuple) else (value, value, 1.0, 0.0)
    return torch.tensor(row, dtype=torch.float32, device=device)


def at_step(rows: Tensor, step: Tensor) -> Tensor:
    """The value of each schedule row at this step."""
    return linear(step, rows[..., 0], rows[..., 1], rows[..., 2], rows[..., 3])


def initial_state(method: Method) -> State:
    """A copy of the method's parameters and buffers, with an optimizer that remembers nothing."""
    params = {n: p.detach().clone() for n, p in method.named_parameters()}
    buffers = {n: b.detach().clone() for n, b in method.named_buffers()}
    device = next(iter(params.values())).device
    moments = {}
    for player, names in player_parameters(method).items():
        zeros = [[torch.zeros_like(params[n]) for n in names] for _ in range(2)]
        moments[player] = Moments(zeros[0], zeros[1], torch.zeros((), device=device))
    return State(params, buffers, moments, torch.zeros((), dtype=torch.int64, device=device))


def draw_noise(method: Method, key: Tensor, batch: int) -> dict[str, Tensor]:
    """Each noise the method asked for, from its own stream."""
    sizes = {"B": batch, "Z": method.latents}

    def draw(name: str, noise: Noise) -> Tensor:
        shape = tuple(sizes[d] if isinstance(d, str) else d for d in noise.dims)
        return (random_normal if noise.kind == "normal" else random_uniform)(fold(key, name), shape)

    return {name: draw(name, noise) for name, noise in method.noise.items()}
