"""From a run's configuration to what trains it: method, device, program and engine."""

import ctypes
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import cache
from typing import Any

import torch

from unweave.config import RunConfig
from unweave.config.model_size import TRAINING_COPIES, check_model_size, memory_errors
from unweave.contract import DataInfo, Method, all_phases, hyper_params, is_supervised, player_parameters, stages
from unweave.data import Dataset, Sampler, parse_supervision
from unweave.data.prefetch import BatchPrefetcher, DeviceBuffer, device_cache, step_keys
from unweave.data.storage.memory_limit import device_memory_limit
from unweave.data.supervision import NoSupervision, Supervision
from unweave.engine.optim import Optimizer
from unweave.engine.program import Program, State, schedule_row
from unweave.errors import UserError, check_choice, invalid
from unweave.methods import METHODS, construct
from unweave.methods.semi_supervised import accepts_label_term
from unweave.nn.networks import weight_init
from unweave.ops.noise import fold


def find_method(method: str | type[Method]) -> type[Method]:
    """Return the method class of this name; a class is returned unchanged."""
    if isinstance(method, str):
        return METHODS[check_choice("method", method, METHODS)]
    if not (isinstance(method, type) and issubclass(method, Method)):
        raise invalid("method", method, "the name of a method or a subclass of Method")
    return method


@contextmanager
def matmul_precision(precision: str) -> Iterator[None]:
    """Set how float32 products may be rounded: tf32 only if requested, whatever the defaults of the libraries."""
    products, convolutions = torch.get_float32_matmul_precision(), torch.backends.cudnn.allow_tf32
    torch.set_float32_matmul_precision("high" if precision == "tf32" else products)
    torch.backends.cudnn.allow_tf32 = precision != "float32"
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(products)
        torch.backends.cudnn.allow_tf32 = convolutions


@cache
def keep_freed_memory() -> None:
    """Let glibc keep freed memory. By default it returns the large tensors of a step to the system after each step."""
    with suppress(AttributeError, OSError, TypeError):  # other C libraries do not have mallopt
        mallopt = ctypes.CDLL(None).mallopt
        mallopt(-3, 2**25)  # M_MMAP_THRESHOLD, its largest value
        mallopt(-1, 2**30)  # M_TRIM_THRESHOLD


def build(
    cls: type[Method],
    config: RunConfig,
    data: Dataset,
    previous: Method | None = None,
    stage: int = 0,
    supervision: Supervision | None = None,
) -> Method:
    """Return the method with its initial weights, a function of the seed and the stage only.

    `supervision` is the parsed `config.supervision`; if it is None, it is parsed here.
    """
    previous = None if previous is None else previous.cpu()
    with torch.random.fork_rng(devices=[]), weight_init(config.init):
        torch.manual_seed(config.seed + stage * 2**40)
        info = parse_supervision(supervision or config.supervision, data).info(data)
        with memory_errors(cls, info, config.arguments):
            return construct(cls, info, config.arguments, previous).to(config.device)


def probe_method(cls: type[Method], info: DataInfo, arguments: Mapping[str, Any]) -> Method:
    """Build the method to see what it needs. Labels that it does not use are reported before any other error."""
    try:
        check_model_size(cls, info, arguments, copies=TRAINING_COPIES)
        with torch.random.fork_rng(devices=[]), memory_errors(cls, info, arguments):
            probe = construct(cls, info, arguments)
    except UserError:
        if "semi_supervised" not in arguments:
            _check_labels(cls, info, cls.needs)
        raise
    _check_labels(cls, info, probe.needs)
    return probe


def _check_labels(cls: type[Method], info: DataInfo, needs: tuple[str, ...]) -> None:
    used = any(map(is_supervised, [needs, *(stage.needs for stage in stages(cls)[1:])]))
    if info.labels and not used and accepts_label_term(cls):
        accepted = "none, or given together with semi_supervised=xent, l2 or cov"
        raise invalid("supervision", info.supervision, accepted, context=f"{cls.__name__} does not use labels")


def load_trained_weights(method: Method, state: State) -> None:
    """Copy the weights of a training state into the method."""
    trained = {**state.params, **state.buffers}
    method.load_state_dict({n: trained[n] for n in method.state_dict() if n in trained}, strict=False)


def build_program(
    config: RunConfig, method: Method, data: Dataset, stage: int = 0, supervision: Supervision | None = None
) -> Program:
    """Return what the engine needs for one stage of a run; `supervision` as in `build`."""
    device = config.device
    # A run of an older version lacks the hyperparameters that were added since.
    rows = [schedule_row(config.hyper.get(name, param.default), device) for name, param in hyper_params(method).items()]
    optimizers = {player: _optimizer(config.optimizers[player], device) for player in method.players}
    seed = torch.tensor(config.seed, dtype=torch.int64, device=device)
    # Supervision that no stage can use is refused; a stage that does not need it gets none.
    later = any(is_supervised(cls.needs) for cls in stages(type(method))[1:])
    used = is_supervised(method.needs) or (stage == 0 and not later)
    given = supervision or config.supervision if used else NoSupervision(text="none")
    return Program(
        method=method,
        sample=Sampler(data, method.needs, given, seed=config.seed),
        batch=config.batch,
        seed=fold(seed, stage) if stage else seed,
        hyper=torch.stack(rows) if rows else torch.zeros(0, 4, device=device),
        optimizers=optimizers,
        parameter_names=player_parameters(method),
        precision=config.precision,
        run_seed=seed,
    )


def _optimizer(settings: Mapping[str, Any], device: str) -> Optimizer:
    clip = torch.tensor(settings["clip"], device=device) if settings["clip"] else None
    optimizer = Optimizer(schedule_row(settings["lr"], device), clip=clip)
    if "momentum" in settings:
        return optimizer._replace(momentum=settings["momentum"])
    return optimizer._replace(betas=tuple(settings["betas"]), eps=settings["eps"])


def with_prefetch(program: Program, step: int, cache_bytes: int = 0) -> Program:
    """Return the program with its batches prepared on the host, ahead of the step, for data that are not resident.

    Images that fit into `cache_bytes` of the device's memory are copied there first.
    """
    phases, device = len(all_phases(program.method)), program.seed.device
    sampler: Sampler = program.sample  # type: ignore[assignment]
    cached_M = device_cache(sampler.data, cache_bytes, device)
    keys, num_cached = step_keys(int(program.seed), step, phases), 0 if cached_M is None else len(cached_M)
    prefetcher = BatchPrefetcher(sampler, keys, program.batch, pin=device.type == "cuda", num_cached=num_cached)
    return program._replace(sample=DeviceBuffer(prefetcher, phases, device, cached_M))


def device_cache_bytes(data: Dataset, device: torch.device | str) -> int:
    """Return how many bytes of streamed data may be cached on the device."""
    if torch.device(device).type != "cuda":
        return 0
    return device_memory_limit(device) if data.device_cache_limit is None else data.device_cache_limit
