"""The memory of a training step, estimated from steps with small batches, so that a batch that is too large is refused.

Allocating it would not be a safe test: Linux may grant the memory, and end the process when it is filled.
"""

import math

import torch
from torch import Tensor

from unweave.config.model_size import TRAINING_COPIES, check_model_size, is_unusual, memory_errors, too_large
from unweave.contract import all_phases
from unweave.data.storage.memory_limit import usable_memory
from unweave.engine.loop import compute_losses
from unweave.engine.program import Program, State, initial_state
from unweave.training.build import build, build_program
from unweave.training.cohort import Run

_SIZES = (2, 4, 8)  # batches of the estimate
_BYTES_PER_VALUE, _BYTES_PER_IMAGE = 400, 200_000  # of the networks of unweave, for images of any size; at most


def check_memory(run: Run) -> None:
    """Raise if the model, or a step on the host, needs more memory than there is; a CUDA device reports it itself."""
    config, info = run.config, run.supervision.info(run.data)
    check_model_size(run.cls, info, config.arguments, copies=TRAINING_COPIES)
    expected = config.batch * (math.prod(info.shape) * _BYTES_PER_VALUE + _BYTES_PER_IMAGE)
    if config.device != "cpu" or (expected < usable_memory() and not is_unusual(run.cls, info, config.arguments)):
        return
    config = config.replace(batch=min(config.batch, _SIZES[-1]))
    with memory_errors(run.cls, info, config.arguments, run.config.batch):
        method = build(run.cls, config, run.data, supervision=run.supervision)
        program, state = build_program(config, method, run.data, supervision=run.supervision), initial_state(method)
        measured = [_saved_bytes(program._replace(batch=size), state) for size in _SIZES]
    if (needed := _extrapolated(measured, run.config.batch)) > usable_memory():
        raise too_large(run.cls, info, config.arguments, run.config.batch, needed)


def _saved_bytes(program: Program, state: State) -> int:
    """Return the bytes that the backward pass of a step keeps, of the phase with most of them."""
    found = []
    params = {name: tensor.detach().requires_grad_() for name, tensor in state.params.items()}
    for phase in range(len(all_phases(program.method))):
        storages: dict[int, int] = {}

        def keep(tensor: Tensor, storages: dict[int, int] = storages) -> Tensor:
            storage = tensor.untyped_storage()
            storages[storage.data_ptr()] = storage.nbytes()
            return tensor

        with torch.enable_grad(), torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
            out = compute_losses(program, state._replace(params=params), phase)
        found.append(sum(storages.values()))
        del out
    return max(found)


def _extrapolated(measured: list[int], batch: int) -> float:
    """Return the value of the parabola through the measured bytes, for a batch: losses may compare all pairs."""
    first, second, third = measured
    a, b, _ = _SIZES
    curvature = max(0.0, ((third - second) - 2 * (second - first)) / (6 * a**2))
    slope = max(0.0, (second - first) / a - curvature * (a + b))
    return first + slope * (batch - a) + curvature * (batch**2 - a**2)
