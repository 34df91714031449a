"""Train many runs together: a sweep over settings and seeds as a few fleets, ending in ordinary run folders."""

import itertools
import warnings
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from unweave.config import RunConfig, read_config
from unweave.config.devices import find_device
from unweave.contract import Method
from unweave.data import Dataset, load_data, parse_supervision
from unweave.engine.replicas import STRATEGIES
from unweave.errors import UserError, UserNotice, check_choice, check_integer, invalid
from unweave.model import check_data, load_training_data
from unweave.runs import RunFolder, existing_folder_error
from unweave.training.build import find_method
from unweave.training.cohort import Run
from unweave.training.folders import check_extension
from unweave.training.prepare import data_label, dry_run, prepare
from unweave.training.progress import ProgressCallback
from unweave.training.step_memory import check_memory
from unweave.training.trainer import Result, train_all

_NEW_RUN = ", or train a new run on these data"


def expand(settings: Mapping[str, Sequence[Any]], seeds: Iterable[int]) -> list[dict[str, Any]]:
    """Return every combination of the settings' values, each with every seed."""
    names = list(settings)
    return [
        {**dict(zip(names, values, strict=True)), "seed": seed}
        for values in itertools.product(*settings.values())
        for seed in seeds
    ]


def folder_name(run: Mapping[str, Any], method: str, data: str, varied: Sequence[str]) -> str:
    """Return a run's name in its sweep: method, data, what varies, seed."""
    words = [f"{name}{run[name]}".replace("/", "_").replace(" ", "") for name in varied if name in run]
    return "-".join([method, data, *words, f"seed{run.get('seed', 0)}"])


def fit(
    runs: Sequence[Mapping[str, Any]],
    *,
    out: str | Path = "runs",
    strategy: str = "auto",
    resume: bool = False,
    observe: ProgressCallback | None = None,
) -> list[Result]:
    """Train runs together; each is given as keywords of `train` ("method", "data", "seed", "beta", ...).

    Every run ends as a folder below `out`, as if it had been trained alone. Existing folders are continued if `resume`
    is True, and an error otherwise.
    """
    if not runs:
        raise invalid("runs", list(runs), "at least one run, such as {'method': 'beta_vae', 'seed': 0}")
    check_choice("strategy", strategy, ("auto", *STRATEGIES))
    prepared = _prepare_all(runs, Path(out), resume)
    return train_all(prepared, strategy, observe)


def resume_all(
    paths: Sequence[str | Path],
    *,
    strategy: str = "auto",
    device: str | None = None,
    steps: int | None = None,
    observe: ProgressCallback | None = None,
) -> list[Result]:
    """Continue interrupted runs together, or extend them to `steps`; finished ones are returned unchanged."""
    check_choice("strategy", strategy, ("auto", *STRATEGIES))
    loaded: dict[str, Dataset] = {}
    runs = []
    for path in paths:
        config = read_config(RunFolder.open(path))
        data = loaded.get(config.data_text())
        runs.append(reopen(path, data=data, device=device, steps=steps))
        loaded[config.data_text()] = runs[-1].data
    return train_all(runs, strategy, observe)


def reopen(
    path: str | Path,
    *,
    method: type[Method] | None = None,
    data: Dataset | None = None,
    device: str | None = None,
    steps: int | None = None,
) -> Run:
    """Return the run in a folder, ready to be continued; with `steps`, to be extended to so many."""
    folder = RunFolder.open(path)
    config = read_config(folder)
    config = config.replace(device=find_device(device or config.device, config.precision))
    cls = method or find_method(config.method)
    if steps is not None and check_integer("steps", steps, 1) != config.steps:
        check_extension(folder, cls, config.steps, steps)
        config = config.replace(steps=steps)
    data = data or load_training_data(folder, _NEW_RUN)
    check_resumed_data(folder, config, data)
    run = Run(folder, config, cls, data, parse_supervision(config.supervision, data))
    check_memory(run)
    return run


def check_resumed_data(folder: RunFolder, config: RunConfig, data: Dataset) -> None:
    """Raise if a run is to be continued on other data; give notice if that cannot be verified."""
    if not check_data(folder, config, data, _NEW_RUN):
        text = "a run of an older version stores no digest of its data; only their number and shape were compared"
        warnings.warn(text, UserNotice, stacklevel=4)


def _prepare_all(runs: Sequence[Mapping[str, Any]], out: Path, resume: bool) -> list[Run]:
    """Check all runs before the first folder is created."""
    loaded: dict[str, Dataset] = {}
    prepared: list[Run] = []
    differing = {n for run in runs for n in run if any(r.get(n) != run[n] for r in runs)}
    varied = sorted(differing - {"method", "data", "seed", "out"})
    checked: set[str] = set()
    for given in runs:
        options = {k: v for k, v in given.items() if k not in ("method", "data", "out")}
        name = given.get("data", "sprites")
        data = name if isinstance(name, Dataset) else loaded.setdefault(str(name), load_data(name))
        run = prepare(given.get("method", ""), data, out=given.get("out") or out, **options)
        if not given.get("out"):
            name = folder_name(given, run.config.method, data_label(run.config), varied)
            run = run._replace(folder=RunFolder(out / name))
        path, key = run.folder.path, f"{run.config.cohort_key()} {run.config.init_from}"
        if path in {other.folder.path for other in prepared}:
            raise UserError(f"out '{path}' is given twice; runs need folders of their own", argument="out", value=path)
        if path.exists():
            run = _check_existing(run, resume)
        elif key not in checked:
            dry_run(run)
            checked.add(key)
        prepared.append(run)
    return prepared


def _check_existing(run: Run, resume: bool) -> Run:
    """Return the run with the configuration of its folder; raise unless that holds the same run."""
    path = run.folder.path
    if not resume:
        raise existing_folder_error(path)
    stored = read_config(RunFolder.open(path))
    if name := stored.difference(run.config):
        ours, theirs = getattr(run.config, name), getattr(stored, name)
        message = f"out '{path}' holds another run: its {name} is {theirs!r}, not {ours!r}"
        raise UserError(message, argument=name, value=ours, accepted=repr(theirs))
    check_resumed_data(run.folder, stored, run.data)
    return run._replace(config=stored.replace(device=run.config.device), new=False)
