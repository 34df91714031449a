"""Train a method on a data set into a run folder; resume it after any interruption to the same result."""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Callable, Mapping
from numbers import Integral
from pathlib import Path
from typing import Any, NamedTuple

import torch

from unweave.config import resolve
from unweave.contract import Method, all_phases, is_supervised, player_parameters, stages
from unweave.data import USER_DATASETS, Dataset, load_data, supervised_info
from unweave.data.metadata import dataset_metadata
from unweave.data.prefetch import DeviceBuffer
from unweave.data.supervision.label_mapping import describe_labels
from unweave.data.supervision.specs import check_needs, default_supervision
from unweave.data.user.inspection import data_warnings, skipped_files
from unweave.data.user.pair_lists import resolve_pairs_file
from unweave.engine.checkpoint import restore_state, save_state, saved_stage
from unweave.engine.loop import compute_losses
from unweave.engine.program import initial_state
from unweave.errors import UserError, UserNotice
from unweave.methods import METHODS, variant
from unweave.model import TrainedModel, load, load_training_data
from unweave.nn.networks import GLOROT, weight_init
from unweave.runs import RunFolder, environment, record_training_time
from unweave.training.build import (
    build,
    build_program,
    device_cache_bytes,
    find_device,
    find_engine,
    find_method,
    is_streamed,
    load_trained_weights,
    make_engine,
    matmul_precision,
    optimizer_settings,
    probe_method,
    with_prefetch,
)
from unweave.training.validation import make_validation


class Progress(NamedTuple):
    """What an observer of a run is told after every record."""

    stage: str
    step: int
    steps: int
    rate: float  # steps a second
    remaining_seconds: float  # seconds
    logs: dict[str, float]


class PreparedRun(NamedTuple):
    """A run that was checked and not begun."""

    config: dict[str, Any]
    cls: type[Method]
    data: Dataset


def train(
    method: str | type[Method],
    data: str | Dataset = "sprites",
    *,
    steps: int = 10_000,
    batch: int = 64,
    seed: int = 0,
    lr: float | str | None = None,
    optimizer: str = "adam",
    clip: float = 0.0,
    init: str = GLOROT,
    supervision: str | None = None,
    device: str = "auto",
    engine: str = "auto",
    precision: str = "float32",
    out: str | Path | None = None,
    log_every: int = 100,
    checkpoint_every: int = 1000,
    observe: Callable[[Progress], None] | None = None,
    **settings: Any,
) -> TrainedModel:
    """Train and return the model. `settings` are the method's own arguments, such as beta=4 or latents=6."""
    options: dict[str, Any] = dict(
        steps=steps, batch=batch, seed=seed, lr=lr, clip=clip, init=init, supervision=supervision, device=device
    )
    options |= dict(optimizer=optimizer, engine=engine, precision=precision)
    options |= dict(log_every=log_every, checkpoint_every=checkpoint_every)
    config, cls, data = prepare(method, data, **options, **settings)
    dry_run(config, cls, data)
    folder = make_folder(out or default_folder(config), config, data)
    return _fit(folder, config, cls, data, observe)


def prepare(
    method: str | type[Method],
    data: str | Dataset = "sprites",
    *,
    steps: int = 10_000,
    batch: int = 64,
    seed: int = 0,
    lr: float | str | None = None,
    optimizer: str = "adam",
    clip: float = 0.0,
    init: str = GLOROT,
    supervision: str | None = None,
    device: str = "auto",
    engine: str = "auto",
    precision: str = "float32",
    log_every: int = 100,
    checkpoint_every: int = 1000,
    **settings: Any,
) -> PreparedRun:
    """Everything a run is, checked and complete; nothing is written."""
    plain = find_method(method)
    cls = variant(plain, settings)
    fixed, hyper = resolve(cls, settings)
    device = find_device(device, precision)
    data = load_data(data)
    steps, batch, seed = _whole("steps", steps, 1), _whole("batch", batch, 2), _whole("seed", seed, 0)
    log_every, checkpoint_every = _whole("log_every", log_every, 1), _whole("checkpoint_every", checkpoint_every, 1)
    if seed >= 2**62:
        raise UserError(f"seed {seed} is too large; use less than 2^62")
    engine = find_engine(engine)
    supervision = supervision and resolve_pairs_file(supervision)
    for stage in stages(cls):  # what a later stage lacks is said now, not when it begins
        if is_supervised(stage.needs) and cls is plain:  # with a few labels the method itself says what it lacks
            check_needs(supervision or default_supervision(stage.needs), stage.needs, data)
    told = supervised_info(data, supervision or "none")
    with weight_init(init) as weights:
        probe = probe_method(cls, told, fixed)
    if weights.deviation is not None and not weights.used:
        raise UserError(f"start '{init}' does nothing to {cls.__name__}: only networks of unweave.nn ask for it")
    supervision = default_supervision(probe.needs) if supervision is None else supervision
    for line in [*data_warnings(data), *describe_labels(supervision, data)]:
        warnings.warn(line, UserNotice, stacklevel=3)
    config = {
        "method": next((n for n, c in METHODS.items() if c is plain), cls.__name__),
        "arguments": fixed,
        "hyper": hyper,
        "data": data.name,
        "data_options": data.options,
        "supervision": supervision,
        "steps": steps,
        "batch": batch,
        "seed": seed,
        "optimizer": optimizer_settings(cls, lr, clip, optimizer),
        "init": init.strip(),
        "precision": precision,
        "engine": engine,
        "device": device,
        "log_every": log_every,
        "checkpoint_every": max(log_every, checkpoint_every // log_every * log_every),
        "created": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "versions": environment(),
    }
    if lines := skipped_files(data):
        config["left_out"] = lines  # of your own data, for the record
    return PreparedRun(config, cls, data)


def _whole(name: str, value: Any, least: int) -> int:
    """The value as Python's own integer: numpy's are not written as JSON."""
    if isinstance(value, bool) or not isinstance(value, Integral):
        raise UserError(f"{name} {value!r} is no whole number; use {least} or more")
    if value < least:
        raise UserError(f"{name} {value} is too small; use {least} or more")
    return int(value)


def make_folder(path: str | Path, config: Mapping[str, Any], data: Dataset) -> RunFolder:
    """The folder of a run that begins."""
    return RunFolder.create(path, config, dataset_metadata(data, config["supervision"], config["seed"]))


def dry_run(config: Mapping[str, Any], cls: type[Method], data: Dataset) -> None:
    """One forward pass before anything is written: what is wrong with a setting shows here."""
    if is_streamed(data):
        config = {**config, "device": "cpu", "precision": "float32"}
    data.to(config["device"])
    method = build(cls, config, data)
    player_parameters(method)
    program, state = build_program(config, method, data), initial_state(method)
    with torch.no_grad():
        for phase in range(len(all_phases(method))):
            compute_losses(program, state, phase)


def resume(
    path: str | Path,
    *,
    method: type[Method] | None = None,
    data: Dataset | None = None,
    device: str | None = None,
    observe: Callable[[Progress], None] | None = None,
) -> TrainedModel:
    """Go on with a run that was interrupted; a finished one is returned as it is."""
    folder = RunFolder.open(path)
    config = folder.config
    config["device"] = find_device(device or config["device"], config["precision"])
    if folder.finished:
        return load(path, device=config["device"], method=method, data=data)
    data = data or load_training_data(folder)
    cls = variant(method or find_method(config["method"]), config["arguments"])
    return _fit(folder, config, cls, data, observe)


def _fit(
    folder: RunFolder,
    config: Mapping[str, Any],
    cls: type[Method],
    data: Dataset,
    observe: Callable[[Progress], None] | None,
) -> TrainedModel:
    """Every stage in order, from wherever the folder stands."""
    data = data.to("cpu" if is_streamed(data) else config["device"])
    begun, method = saved_stage(folder), None
    with matmul_precision(config["precision"]), record_training_time([folder], config["device"]) as note_time:
        for stage, stage_cls in enumerate(stages(cls)):
            method = build(stage_cls, config, data, method, stage)
            if begun is None or stage >= begun:
                resumed = begun == stage
                _fit_stage(folder, config, method, data, stage, resumed=resumed, observe=observe, note_time=note_time)
    assert method is not None
    folder.save("weights.safetensors", method.state_dict(), steps=str(config["steps"]), stage=str(stage))
    return TrainedModel(folder, dict(config), method.eval(), data.to(config["device"]))


def _fit_stage(
    folder: RunFolder,
    config: Mapping[str, Any],
    method: Method,
    data: Dataset,
    stage: int,
    *,
    resumed: bool,
    observe: Callable[[Progress], None] | None,
    note_time: Callable[[], None],
) -> None:
    """One stage to its last step; the method ends holding the trained weights."""
    state = initial_state(method)
    if resumed:
        restore_state(folder, state)
    folder.truncate_log(stage, int(state.step))
    steps, log_every = config["steps"], config["log_every"]
    begun_at, began = int(state.step), time.monotonic()
    if begun_at < steps:
        program = build_program(config, method, data, stage)
        if is_streamed(data):
            program = with_prefetch(program, begun_at, device_cache_bytes(data, config["device"]))
        runner, validate = make_engine(program, state, config["engine"]), make_validation(method, config, data)
        done = begun_at
        try:
            while done < steps:
                chunk = min(log_every, steps - done)
                logs = runner.run(chunk)
                done += chunk
                _check_finite(logs, done, folder)
                due = done % config["checkpoint_every"] == 0 or done == steps
                if due and validate:
                    load_trained_weights(method, runner.state)
                    logs = {**logs, **validate()}
                folder.append_log({"stage": stage, "step": done, **logs})
                if due:
                    save_state(folder, runner.state, stage)
                    note_time()
                if observe:
                    rate = (done - begun_at) / max(time.monotonic() - began, 1e-9)
                    observe(Progress(type(method).__name__, done, steps, rate, (steps - done) / rate, logs))
        finally:
            if isinstance(program.sample, DeviceBuffer):
                program.sample.stream.close()
        state = runner.state
    load_trained_weights(method, state)


def _check_finite(logs: Mapping[str, float], step: int, folder: RunFolder) -> None:
    broken = [name for name, value in logs.items() if not math.isfinite(value)]
    if broken:
        raise UserError(
            f"training diverged: {broken[0]} is not finite by step {step} of run '{folder.path}'; "
            "use a smaller lr, or clip (for instance clip=10)"
        )


def default_folder(config: Mapping[str, Any]) -> Path:
    return Path("runs") / f"{config['method']}-{data_label(config)}-seed{config['seed']}"


def data_label(config: Mapping[str, Any]) -> str:
    """The data's name in a file name: of your own, that of the folder or file."""
    path = config["data_options"].get("path")
    return Path(str(path)).stem if path and config["data"] in USER_DATASETS else str(config["data"])
