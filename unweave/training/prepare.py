"""Check the options of a run and complete its configuration, before anything is written."""

import time
import warnings
from functools import lru_cache
from pathlib import Path
from typing import Any

import torch

from unweave.config import RunConfig, resolve_settings, split_options
from unweave.config.devices import find_device
from unweave.config.model_size import memory_errors
from unweave.config.optimizers import resolve_optimizers
from unweave.contract import DataInfo, Method, all_phases, is_supervised, player_parameters, stages
from unweave.data import USER_DATASETS, Dataset, load_data, parse_supervision
from unweave.data.supervision import NoSupervision, Supervision
from unweave.data.supervision.parse import check_needs, default_supervision
from unweave.data.user.inspection import data_warnings, skipped_files
from unweave.engine.loop import compute_losses
from unweave.engine.program import initial_state
from unweave.errors import DataNotice, invalid
from unweave.methods import METHODS
from unweave.model import load_weights
from unweave.nn.networks import weight_init
from unweave.runs import RunFolder, environment
from unweave.runs.checkpoints import has_checkpoint
from unweave.training.build import build, build_program, find_method, probe_method
from unweave.training.cohort import Run
from unweave.training.step_memory import check_memory


def prepare(
    method: str | type[Method], data: str | Dataset = "sprites", *, out: str | Path | None = None, **options: Any
) -> Run:
    """Return a run with every option checked and its configuration complete; nothing is written.

    `options` are those of `train` (the fields of `RunConfig`) and settings of the method.
    """
    cls, config = find_method(method), resolve_options(method, **options)
    device = find_device(config.device, config.precision)
    data = load_data(data)
    supervision = check_supervision(cls, data, config)
    for line in [*data_warnings(data), *supervision.warnings(data)]:
        warnings.warn(line, DataNotice, stacklevel=3)
    config = config.replace(
        data=data.name,
        data_options=data.options,
        device=device,
        supervision=supervision.text,
        init_from=None if config.init_from is None else _weights_source(config.init_from),
        created=time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        versions=environment(),
        notices=skipped_files(data),
        data_digest=data.digest,
    )
    path = out or Path("runs") / f"{config.method}-{data_label(config)}-seed{config.seed}"
    return Run(RunFolder(path), config, cls, data, supervision, new=True)


def resolve_options(method: str | type[Method], **keywords: Any) -> RunConfig:
    """Return the configuration of these options and settings, without the data."""
    cls = find_method(method)
    options, settings = split_options(keywords)
    arguments, hyper = resolve_settings(cls, settings)
    name = next((name for name, known in METHODS.items() if known is cls), cls.__name__)
    optimizers = resolve_optimizers(cls, options["lr"], options["clip"], options["optimizer"])
    return RunConfig(name, arguments, hyper, data="", data_options={}, optimizers=optimizers, **options)


def check_supervision(cls: type[Method], data: Dataset, config: RunConfig) -> Supervision:
    """Return the given or the default supervision; raise if the method needs more, or does not use it."""
    text = config.supervision
    given = NoSupervision(text="none") if text is None else parse_supervision(text, data)
    for stage in stages(cls):  # missing supervision of a later stage is reported now
        has_default = text is None and default_supervision(stage.needs) != "none"
        # The errors of semi-supervised methods are more precise.
        if is_supervised(stage.needs) and not has_default and "semi_supervised" not in config.arguments:
            check_needs(given, stage.needs, data)
    needs = _needs(cls, given.info(data), tuple(config.arguments.items()), config.init)  # type: ignore[arg-type]
    default = default_supervision(needs) if text is None else "none"
    return given if default == "none" else parse_supervision(default, data)


@lru_cache(maxsize=256)  # the runs of a sweep differ mostly in their seeds, and building a network takes long
def _needs(cls: type[Method], info: DataInfo, arguments: tuple[tuple[str, Any], ...], init: str) -> tuple[str, ...]:
    """Return what the method needs with these constructor arguments; raise if one is invalid."""
    with weight_init(init) as weights:
        probe = probe_method(cls, info, dict(arguments))
    if weights.deviation is not None and not weights.used:
        raise invalid("init", init, "glorot", context=f"{cls.__name__} has no networks of unweave.nn")
    return probe.needs


def dry_run(run: Run) -> None:
    """Run one forward pass on the first batch, so that an invalid setting is reported before anything is written."""
    config, data = run.config, run.data
    data.fit_to(torch.device(config.device))
    if not data.resident:
        config = config.replace(device="cpu", precision="float32")
    data.to(config.device)
    check_memory(run)
    with memory_errors(run.cls, run.supervision.info(data), config.arguments, config.batch):
        method = build(run.cls, config, data, supervision=run.supervision)
        if config.init_from:
            init_from(method, config.init_from)
        player_parameters(method)
        program, state = build_program(config, method, data, supervision=run.supervision), initial_state(method)
        with torch.no_grad():
            for phase in range(len(all_phases(method))):
                compute_losses(program, state, phase)


def _weights_source(path: str | Path) -> str:
    """Return the absolute path of the run folder whose weights a new run starts from."""
    folder = RunFolder(str(path))
    if not folder.has("config.json") or not (folder.finished or has_checkpoint(folder)):
        raise invalid("init_from", str(path), "a run folder that contains weights")
    return str(folder.path.resolve())


def init_from(method: Method, path: str) -> None:
    """Copy the weights of another run that have the same names; the others keep their initial values.

    Only the first stage of a run starts from another run; each later stage is built from the trained stage before it.
    """
    weights, own = load_weights(RunFolder.open(path))[0], method.state_dict()
    shared = {name: weights[name] for name in own if name in weights}
    for name, tensor in shared.items():
        if tensor.shape != own[name].shape:
            accepted = f"a run whose {name} has shape {tuple(own[name].shape)}"
            raise invalid("init_from", path, accepted, hint=f"this one has shape {tuple(tensor.shape)}")
    if not shared:
        raise invalid("init_from", path, f"a run that shares weights with {type(method).__name__}")
    method.load_state_dict(shared, strict=False)


def data_label(config: RunConfig) -> str:
    """Return the name of the data in file names: for user data, that of the folder or file."""
    path = config.data_options.get("path")
    return Path(str(path)).stem if path and config.data in USER_DATASETS else config.data
