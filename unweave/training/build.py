"""From a run's config to what trains it: the method, its program, its optimizer settings, the engine, the device."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import torch

from unweave.config import schedule
from unweave.contract import (
    DataInfo,
    Method,
    all_phases,
    hyper_params,
    is_supervised,
    player_parameters,
    select_arguments,
    stages,
)
from unweave.data import Dataset, Sampler, supervised_info
from unweave.data.prefetch import BatchPrefetcher, DeviceBuffer, device_cache, step_keys
from unweave.engine.compiled import CompiledEngine
from unweave.engine.loop import LoopEngine
from unweave.engine.optim import Optimizer
from unweave.engine.program import Program, State, schedule_row
from unweave.errors import UserError, check_choice
from unweave.methods import METHODS
from unweave.methods.semi_supervised import accepts_labels
from unweave.nn.networks import GLOROT, weight_init
from unweave.ops.noise import fold

ENGINES = ("auto", "loop", "compiled", "graph")
PRECISIONS = ("float32", "tf32", "bf16")


def find_method(method: str | type[Method]) -> type[Method]:
    if isinstance(method, str):
        check_choice("method", method, METHODS)
        return METHODS[method]
    if not (isinstance(method, type) and issubclass(method, Method)):
        raise UserError(f"method {method!r} is none; give the name of one, or a class of your own")
    return method


def find_engine(engine: str) -> str:
    check_choice("engine", engine, ENGINES)
    return engine


def find_device(device: str, precision: str = "float32") -> str:
    """The device to use; "auto" is the first CUDA device, else the CPU."""
    check_choice("precision", precision, PRECISIONS)
    found = _existing(device)
    if precision == "bf16" and not found.startswith("cuda"):
        raise UserError(f"precision 'bf16' is for CUDA devices; use float32 on device '{found}'")
    return found


def _existing(device: str) -> str:
    if device == "auto":
        return "cuda" if torch.cuda.is_available() else "cpu"
    kind = device.split(":")[0]
    if kind not in ("cpu", "cuda", "mps"):
        raise UserError(f"device '{device}' is unknown; use auto, cpu, cuda, cuda:N or mps")
    if kind == "cuda" and not torch.cuda.is_available():
        raise UserError(f"device '{device}' is not there: this machine has no usable CUDA device; use cpu")
    if kind == "mps" and not torch.backends.mps.is_available():
        raise UserError(f"device '{device}' is not there: this machine has no usable MPS device; use cpu")
    return device


@contextmanager
def matmul_precision(precision: str) -> Iterator[None]:
    """How float32 products may be rounded meanwhile: tf32 only if asked for, whatever the libraries' own habits are."""
    products, convolutions = torch.get_float32_matmul_precision(), torch.backends.cudnn.allow_tf32
    torch.set_float32_matmul_precision("high" if precision == "tf32" else products)
    torch.backends.cudnn.allow_tf32 = precision != "float32"
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(products)
        torch.backends.cudnn.allow_tf32 = convolutions


def build(
    cls: type[Method], config: Mapping[str, Any], data: Dataset, previous: Method | None = None, stage: int = 0
) -> Method:
    """The method with its initial weights, which are a function of the seed (and stage) alone."""
    later = {} if previous is None else {"previous": previous.cpu()}
    arguments = select_arguments(cls, config["arguments"])
    with torch.random.fork_rng(devices=[]), weight_init(config.get("init", GLOROT)):
        torch.manual_seed(config["seed"] + stage * 2**40)
        told = supervised_info(data, config["supervision"])
        return cls(told, **arguments, **later).to(config["device"])  # type: ignore[call-arg]


def probe_method(cls: type[Method], told: DataInfo, fixed: Mapping[str, Any]) -> Method:
    """The method, built to see what it needs. That labels are of no use to it is said before what else is wrong."""
    try:
        probe = cls(told, **select_arguments(cls, fixed))  # type: ignore[call-arg]
    except UserError:
        _check_labels(cls, told, cls.needs)
        raise
    _check_labels(cls, told, probe.needs)
    return probe


def _check_labels(cls: type[Method], told: DataInfo, needs: tuple[str, ...]) -> None:
    used = any(map(is_supervised, [needs, *(stage.needs for stage in stages(cls)[1:])]))
    if told.labels and not used and accepts_labels(cls):
        raise UserError(
            f"supervision={told.supervision!r} is given but the method needs only {', '.join(needs)}; "
            "leave it 'none', or set semi_supervised=xent to learn from the labels too"
        )


def load_trained_weights(method: Method, state: State) -> None:
    """The method with the weights that training stands at."""
    trained = {**state.params, **state.buffers}
    method.load_state_dict({n: trained[n] for n in method.state_dict() if n in trained}, strict=False)


def build_program(config: Mapping[str, Any], method: Method, data: Dataset, stage: int = 0) -> Program:
    """What the engine needs to know of one stage of a run."""
    device = config["device"]
    given = config["hyper"]  # that of a run from before a setting was there lacks it
    rows = [
        schedule_row(_row(given.get(name, knob.default)), device) for name, knob in hyper_params(type(method)).items()
    ]
    optimizers = {player: _optimizer(s, device) for player, s in config["optimizer"].items()}
    seed = torch.tensor(config["seed"], dtype=torch.int64, device=device)
    # Supervision that no stage can use is refused; what one stage needs, another may do without.
    later = any(is_supervised(cls.needs) for cls in stages(type(method))[1:])
    used = is_supervised(method.needs) or (stage == 0 and not later)
    return Program(
        method=method,
        sample=Sampler(data, method.needs, config["supervision"] if used else "none", seed=config["seed"]),
        batch=config["batch"],
        seed=fold(seed, stage) if stage else seed,
        hyper=torch.stack(rows) if rows else torch.zeros(0, 4, device=device),
        optimizers={player: optimizers[player] for player in method.players},
        parameter_names=player_parameters(method),
        precision=config["precision"],
        run=seed,
    )


def _optimizer(settings: Mapping[str, Any], device: str) -> Optimizer:
    found = Optimizer(schedule_row(_row(settings["lr"]), device), clip=_clip(settings["clip"], device))
    if "momentum" in settings:
        return found._replace(momentum=settings["momentum"])
    return found._replace(betas=tuple(settings["betas"]), eps=settings["eps"])


def _clip(largest: float, device: str) -> torch.Tensor | None:
    return torch.tensor(largest, device=device) if largest else None


def _row(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


def resolve_engine(engine: str, device: torch.device | str) -> str:
    """The engine of this name; "auto" is the captured graph on CUDA and the plain loop elsewhere."""
    if engine != "auto":
        return engine
    return "graph" if torch.device(device).type == "cuda" else "loop"


def make_engine(program: Program, state: State, engine: str) -> LoopEngine | CompiledEngine:
    """The engine that trains one run."""
    engine = resolve_engine(engine, program.seed.device)
    if engine == "loop":
        return LoopEngine(program, state)
    return CompiledEngine(program, state, capture=engine == "graph")


OPTIMIZERS = ("adam", "sgd")


def optimizer_settings(
    cls: type[Method], lr: float | str | None, clip: float, optimizer: str = "adam"
) -> dict[str, dict[str, Any]]:
    """The paper's recipe by player. A rate the user gives is that of all players, or the recipe's times a factor."""
    check_choice("optimizer", optimizer, OPTIMIZERS)
    if not 0 <= clip < math.inf:
        raise UserError(f"clip {clip:g} is out of range; use 0 (off) or more")
    recipes = {player: stage.optimizer_defaults.get(player, {}) for stage in stages(cls) for player in stage.players}
    found: dict[str, dict[str, Any]] = {}
    for player, published in recipes.items():
        settings = _adam(published) if optimizer == "adam" else _descent(published, lr)
        found[player] = {**settings, "lr": _rate(settings["lr"], lr), "clip": clip}
    return found


def _adam(published: Mapping[str, Any]) -> dict[str, Any]:
    plain = {name: value for name, value in published.items() if name != "sgd"}
    return {"lr": 1e-4, "betas": (0.9, 0.999), "eps": 1e-8, **plain}


def _descent(published: Mapping[str, Any], lr: float | str | None) -> dict[str, Any]:
    """Gradient descent with momentum, 0.9 unless the paper has another."""
    own = published.get("sgd", {})
    if not own and (lr is None or str(lr).lstrip().startswith("x")):
        raise UserError("optimizer 'sgd' has no rate of its own in this method; give one, such as lr=0.01")
    return {"lr": 0.0, "momentum": 0.9, **own}


def _rate(own: float, lr: float | str | None) -> Any:
    """The method's own rate, the one that is given, or for "x0.1" and "x linear(1, 0, 1000)" the product."""
    if lr is None:
        return own
    text, factor = str(lr).strip(), 1.0
    if text.startswith("x"):
        text, factor = text[1:], own
    rate = schedule("lr", text if isinstance(lr, str) else lr)
    ends = rate[:2] if isinstance(rate, tuple) else (rate,)
    if not all(0 <= end < math.inf for end in ends):
        raise UserError(f"lr {lr} is out of range; use 0 or more")
    return (factor * rate[0], factor * rate[1], *rate[2:]) if isinstance(rate, tuple) else factor * rate


def is_streamed(data: Dataset) -> bool:
    """Whether batches are made ahead of the step on the host: the set is not to be held in memory, or on the device."""
    return not data.resident


def with_prefetch(program: Program, step: int, cache_bytes: int = 0) -> Program:
    """The same program with its batches drawn on the host, ahead of the step that needs them.

    Pictures that have room in so many bytes of the device's memory are put there, now.
    """
    phases, device = len(all_phases(program.method)), program.seed.device
    sampler: Sampler = program.sample  # type: ignore[assignment]
    cached_M = device_cache(sampler.data, cache_bytes, device)
    keys, num_cached = step_keys(int(program.seed), step, phases), 0 if cached_M is None else len(cached_M)
    stream = BatchPrefetcher(sampler, keys, program.batch, pin=device.type == "cuda", num_cached=num_cached)
    return program._replace(sample=DeviceBuffer(stream, phases, device, cached_M))


def device_cache_bytes(data: Dataset, device: torch.device | str) -> int:
    """Bytes of a set that is not to be held in memory as a whole which may lie on the device all the same."""
    return data.device_cache_limit if torch.device(device).type == "cuda" else 0
