"""The reference engine: one training step. Every other engine must compute the same."""

from collections.abc import Callable

import torch
from torch import Tensor
from torch.func import functional_call

from unweave.contract import Out, all_phases
from unweave.engine.optim import update
from unweave.engine.program import Program, State, at_step, draw_noise
from unweave.ops.noise import fold


def compute_losses(program: Program, state: State, phase: int) -> Out:
    """Return the losses on a new batch with new noise, which are functions of (seed, step, phase)."""
    method, device = program.method, program.seed.device.type
    named = {"phase": list(method.phases)[phase]} if method.phases else {}
    key = fold(fold(program.seed, state.step), phase)
    batch = program.sample(fold(key, "data"), program.batch, *([] if program.run_seed is None else [program.run_seed]))
    noise = draw_noise(method, fold(key, "noise"), program.batch)
    hyper = method.Hyper(*at_step(program.hyper, state.step).unbind())
    with torch.autocast(device, torch.bfloat16, enabled=program.precision == "bf16", cache_enabled=False):
        return functional_call(method, {**state.params, **state.buffers}, (batch, noise, hyper, state.step), named)


def train_step(
    program: Program, state: State, compute_losses: Callable[[Program, State, int], Out] = compute_losses
) -> tuple[State, dict[str, Tensor]]:
    """Run one step: every phase in order; in a phase first all gradients, then all updates."""
    logs: dict[str, Tensor] = {}
    for phase, players in enumerate(all_phases(program.method).values()):
        params = {n: t.detach().requires_grad_() for n, t in state.params.items()}
        out = compute_losses(program, state._replace(params=params), phase)
        # The gradient of each player is that of its own loss with respect to its own parameters.
        # A fleet has one loss per replica; the gradient of their sum contains that of each replica.
        grads = {
            player: torch.autograd.grad(
                out.losses[player].sum(),
                [params[n] for n in program.parameter_names[player]],
                retain_graph=player != players[-1],
            )
            for player in players
        }
        new_params, moments = dict(state.params), dict(state.moments)
        for player in players:
            names, optimizer = program.parameter_names[player], program.optimizers[player]
            old = [state.params[n] for n in names]
            lr = at_step(optimizer.lr, state.step)
            updated, moments[player] = update(optimizer, lr, old, list(grads[player]), state.moments[player])
            new_params.update(zip(names, updated, strict=True))
        if unknown := out.state.keys() - state.buffers.keys():
            raise TypeError(f"Out.state: {sorted(unknown)} are not buffers of {type(program.method).__name__}")
        buffers = {**state.buffers, **{n: t.detach() for n, t in out.state.items()}}
        state = State(new_params, buffers, moments, state.step)
        logs.update({n: t.detach().float().clone() for n, t in out.logs.items()})  # a logged tensor may be a parameter
    return state._replace(step=state.step + 1), logs


TrainStep = Callable[[Program, State], tuple[State, dict[str, Tensor]]]
StopFunction = Callable[[], bool]


class Engine:
    """Runs training steps. `sums` are the sums of the logged quantities over the steps since `start_sums`."""

    program: Program
    state: State
    sums: dict[str, Tensor]
    step_once: Callable[[], None]  # run a step on the loaded batches and add its logs to the sums

    def start_sums(self) -> None:
        raise NotImplementedError

    def run_steps(self, steps: int, stop: StopFunction | None = None) -> int:
        """Run `steps` training steps, or fewer if `stop` returns True after one of them; return how many."""
        for done in range(steps):
            if done and stop and stop():
                return done
            self.program.next_batches()
            self.step_once()
        return steps

    def run(self, steps: int) -> dict[str, float]:
        """Run `steps` training steps and return the mean of each logged quantity."""
        self.start_sums()
        self.run_steps(steps)
        return {name: float(total) / steps for name, total in self.sums.items()}


class LoopEngine(Engine):
    """Runs the steps one after the other, in Python."""

    def __init__(self, program: Program, state: State, train_step: TrainStep = train_step) -> None:
        self.program, self.state, self.train_step = program, state.clone(), train_step
        self.sums, self.step_once = {}, self._step

    def start_sums(self) -> None:
        self.sums = {}

    def _step(self) -> None:
        after, logs = self.train_step(self.program, self.state)
        # Tensors keep their memory and layout, so that a resumed run computes the same to the last bit.
        for (_, old), (_, new) in zip(self.state.tensors(), after.tensors(), strict=True):
            old.copy_(new)
        self.sums = {name: self.sums[name] + value if self.sums else value for name, value in logs.items()}
