"""The constants of a run (Program) and what changes with every step (State)."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from typing import NamedTuple

import torch
from torch import Tensor

from unweave.contract import Batch, Method, Noise, player_parameters
from unweave.engine.optim import Moments, Optimizer
from unweave.ops.noise import fold, random_normal, random_uniform
from unweave.ops.schedules import linear

Schedule = float | tuple[float, float, float, float]  # a constant, or (start, end, steps, begin)


class Program(NamedTuple):
    """Constants of a run. Tensors may differ between replicas; everything else shapes the step."""

    method: Method
    sample: Callable[..., Batch]  # (key, batch size[, run seed])
    batch: int
    seed: Tensor
    hyper: Tensor  # one schedule row per field of method.Hyper
    optimizers: Mapping[str, Optimizer]
    parameter_names: Mapping[str, list[str]]  # of the parameters that each player updates
    precision: str = "float32"  # "float32", "tf32" or "bf16"
    max_step: Tensor | None = None  # the step after which the state does not change
    run_seed: Tensor | None = None  # seed of the run, the same in every stage; it selects the labelled observations

    def constants(self) -> list[Tensor]:
        """Return the tensors that may differ between replicas, in a fixed order."""
        rates = [t for o in self.optimizers.values() for t in (o.lr, o.clip)]
        return [t for t in (self.seed, self.hyper, *rates, self.max_step, self.run_seed) if t is not None]

    def next_batches(self) -> None:
        """Load the batches of the next step, if the sampler prepares them on the host."""
        if load_next := getattr(self.sample, "load_next", None):
            load_next()

    def with_constants(self, values: Iterator[Tensor]) -> Program:
        """Return the program with other constants, in the order of `constants`."""
        seed, hyper = next(values), next(values)
        optimizers = {
            player: optimizer._replace(lr=next(values), clip=None if optimizer.clip is None else next(values))
            for player, optimizer in self.optimizers.items()
        }
        max_step = None if self.max_step is None else next(values)
        run_seed = None if self.run_seed is None else next(values)
        return self._replace(seed=seed, hyper=hyper, optimizers=optimizers, max_step=max_step, run_seed=run_seed)


class State(NamedTuple):
    """Everything that a step changes and a checkpoint contains."""

    params: dict[str, Tensor]
    buffers: dict[str, Tensor]
    moments: dict[str, Moments]
    step: Tensor

    def tensors(self) -> Iterator[tuple[str, Tensor]]:
        """Yield every tensor with a unique name, in a fixed order."""
        yield "step", self.step
        yield from ((f"params/{n}", t) for n, t in self.params.items())
        yield from ((f"buffers/{n}", t) for n, t in self.buffers.items())
        for player, own in self.moments.items():
            yield f"updates/{player}", own.updates
            yield from ((f"mean/{player}/{i}", t) for i, t in enumerate(own.mean))
            yield from ((f"square/{player}/{i}", t) for i, t in enumerate(own.square))

    def filled(self, values: Iterator[Tensor]) -> State:
        """Return a state of the same form with other tensors, in the order of `tensors`."""
        step = next(values)
        params = {n: next(values) for n in self.params}
        buffers = {n: next(values) for n in self.buffers}
        moments = {}
        for player, own in self.moments.items():
            updates = next(values)
            mean = [next(values) for _ in own.mean]
            moments[player] = own._replace(updates=updates, mean=mean, square=[next(values) for _ in own.square])
        return State(params, buffers, moments, step)

    def finite(self, unchecked: Collection[str] = (), axis: int = 0) -> dict[str, Tensor]:
        """Return for each quantity whether it is finite: norms of the weights, buffers, and moments.

        A weight can be finite and so large that the next step overflows. Quantities named in `unchecked` are left out.
        With axis=1 the tensors and the results have a leading replica axis.
        """
        found = {}
        for name, tensor in self.tensors():
            values = tensor.reshape(*tensor.shape[:axis], -1)
            if name.startswith("params/"):
                found[f"the norm of {name.removeprefix('params/')}"] = values.norm(dim=-1).isfinite()
            elif tensor.is_floating_point() and name not in unchecked:
                found[name] = values.isfinite().all(-1)
        return found

    def not_finite(self, unchecked: Collection[str] = ()) -> str:
        """Return the name of a quantity that is not finite, or ""."""
        finite = self.finite(unchecked)
        flags = torch.stack(list(finite.values())).tolist()
        return next((name for name, is_finite in zip(finite, flags, strict=True) if not is_finite), "")

    def clone(self) -> State:
        return self.filled(t.clone() for _, t in self.tensors())


def schedule_row(value: Schedule, device: torch.device | str = "cpu") -> Tensor:
    """Return (start, end, steps, begin); a constant has equal start and end."""
    row = value if isinstance(value, tuple) else (value, value, 1.0, 0.0)
    return torch.tensor(row, dtype=torch.float32, device=device)


def at_step(rows: Tensor, step: Tensor) -> Tensor:
    """Return the value of each schedule row at this step."""
    return linear(step, rows[..., 0], rows[..., 1], rows[..., 2], rows[..., 3])


def initial_state(method: Method) -> State:
    """Return a copy of the method's parameters and buffers with zero optimizer moments."""
    params = {n: p.detach().clone() for n, p in method.named_parameters()}
    buffers = {n: b.detach().clone() for n, b in method.named_buffers()}
    device = next(iter(params.values())).device
    moments = {}
    for player, names in player_parameters(method).items():
        zeros = [[torch.zeros_like(params[n]) for n in names] for _ in range(2)]
        moments[player] = Moments(zeros[0], zeros[1], torch.zeros((), device=device))
    return State(params, buffers, moments, torch.zeros((), dtype=torch.int64, device=device))


def draw_noise(method: Method, key: Tensor, batch: int) -> dict[str, Tensor]:
    """Draw each noise that the method declares from its own stream."""
    sizes = {"B": batch, "Z": method.latents}

    def draw(name: str, noise: Noise) -> Tensor:
        shape = tuple(sizes[d] if isinstance(d, str) else d for d in noise.dims)
        return (random_normal if noise.kind == "normal" else random_uniform)(fold(key, name), shape)

    return {name: draw(name, noise) for name, noise in method.noise.items()}
