"""Train many runs together: a sweep over settings and seeds as a few fleets, ending in ordinary run folders."""

import itertools
import math
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar

from unweave.config import RunConfig, parse_config, read_config
from unweave.config.devices import find_device
from unweave.contract import Method
from unweave.data import Dataset, load_data, parse_supervision
from unweave.engine.replicas import STRATEGIES
from unweave.errors import UserError, UserNotice, check_choice, check_integer, invalid
from unweave.model import check_data, load_training_data
from unweave.runs import RunFolder, existing_folder_error, is_damaged, list_runs
from unweave.runs.checkpoints import has_checkpoint
from unweave.runs.manifest import Configs, is_empty, manifest_lock, read_manifest, write_manifest
from unweave.training.build import find_method
from unweave.training.cohort import Run
from unweave.training.folders import check_extension, check_stored
from unweave.training.prepare import check_supervision, data_label, dry_run, prepare
from unweave.training.progress import ProgressCallback
from unweave.training.step_memory import check_memory
from unweave.training.trainer import Result, train_all

MAX_RUNS = 100_000  # of one sweep; more is a typing error
T = TypeVar("T")
_NEW_RUN = ", or train a new run on these data"


def expand(settings: Mapping[str, Sequence[Any]], seeds: Iterable[int]) -> list[dict[str, Any]]:
    """Return every combination of the settings' values, each with every seed."""
    names, seeds = list(settings), list(seeds)
    count = len(seeds) * math.prod(map(len, settings.values()))
    if count > MAX_RUNS:
        raise invalid("number of runs", count, f"at most {MAX_RUNS:,}")
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

    Every run ends as a folder below `out`, as if it had been trained alone. A manifest of all runs is written first,
    so that a sweep that was stopped at any moment can be continued. Existing folders are continued if `resume` is True,
    and an error otherwise.
    """
    if not runs:
        raise invalid("runs", list(runs), "at least one run, such as {'method': 'beta_vae', 'seed': 0}")
    check_choice("strategy", strategy, ("auto", *STRATEGIES))
    prepared = _prepare_all(runs, Path(out), resume)
    _write_manifest(Path(out), _listed(runs, prepared), resume)
    for run in prepared:
        if run.new:
            with suppress(OSError):  # an empty folder, which an earlier version left when it was stopped
                run.folder.path.rmdir()
    return train_all(prepared, strategy, observe)


def resume_all(
    paths: str | Path | Sequence[str | Path],
    *,
    strategy: str = "auto",
    device: str | None = None,
    steps: int | None = None,
    observe: ProgressCallback | None = None,
) -> list[Result]:
    """Continue interrupted runs together, or extend them to `steps`; finished ones are returned unchanged.

    Each path is a run folder or a folder of runs. Runs in the manifest of a sweep that have no folder are created.
    """
    check_choice("strategy", strategy, ("auto", *STRATEGIES))
    given = [Path(paths)] if isinstance(paths, str | Path) else list(map(Path, paths))
    members = [(folder, missing) for path in given for folder, missing in _members(path)]

    def resume(chosen: Sequence[tuple[RunFolder, RunConfig | None]]) -> list[Result]:
        runs = _reopen_all(chosen, device, steps)
        if steps is not None:
            for path in given:
                _extend_manifest(path, steps)
        return train_all(runs, strategy, observe)

    if any(folder.path in given for folder, _ in members):
        return resume(members)
    results = train_intact(members, [folder for folder, _ in members], resume)
    done = [result for result in results if not isinstance(result, UserError)]
    if not done:
        raise next(result for result in results if isinstance(result, UserError))
    return done


def _reopen_all(
    members: Sequence[tuple[RunFolder, RunConfig | None]], device: str | None, steps: int | None
) -> list[Run]:
    """Return the runs, ready to be continued; those on the same data share them."""
    loaded: dict[str, Dataset] = {}
    runs = []
    for folder, missing in members:
        text = (missing or read_config(folder)).data_text()
        runs.append(reopen(folder.path, data=loaded.get(text), device=device, steps=steps, missing=missing))
        loaded[text] = runs[-1].data
    return runs


def train_intact(
    items: Sequence[T], folders: Sequence[RunFolder], train: Callable[[Sequence[T]], list[Result]]
) -> list[Result | UserError]:
    """Call `train` with the runs whose folders are not damaged; give notice of the others and return their errors."""
    errors: dict[int, UserError] = {}
    done: dict[int, Result] = {}
    while left := [k for k in range(len(items)) if k not in errors and k not in done]:
        try:
            done = dict(zip(left, train([items[k] for k in left]), strict=True))
        except UserError as error:
            if not (damaged := [k for k in left if is_damaged(error, folders[k])]):
                raise
            warnings.warn(f"left out: {error}", UserNotice, stacklevel=3)
            errors |= dict.fromkeys(damaged, error)
    return [errors[k] if k in errors else done[k] for k in range(len(items))]


def _members(path: Path) -> list[tuple[RunFolder, RunConfig | None]]:
    """Return the run at a path, or the runs of a sweep; those without a folder with their configuration."""
    if (path / "config.json").is_file():
        return [(RunFolder(path), None)]
    manifest = read_manifest(path)
    found = {name: RunFolder(path / name) for name in manifest} | {run.path.name: run for run in list_runs(path)}
    if not found:
        hint = "it is empty: repeat the command that was to create it" if is_empty(path) else ""
        raise invalid("run", str(path), "a run folder, or a folder that contains run folders", hint=hint)
    return [(r, None if r.has("config.json") else parse_config(manifest[name], r)) for name, r in found.items()]


def reopen(
    path: str | Path,
    *,
    method: type[Method] | None = None,
    data: Dataset | None = None,
    device: str | None = None,
    steps: int | None = None,
    missing: RunConfig | None = None,
) -> Run:
    """Return the run in a folder, ready to be continued; with `steps`, to be extended to so many.

    `missing` is the configuration of a run whose folder is to be created.
    """
    folder = RunFolder(path) if missing else RunFolder.open(path)
    config = missing or read_config(folder)
    config = config.replace(device=find_device(device or config.device, config.precision))
    cls = method or find_method(config.method)
    check_stored(folder, config, cls)
    if steps is not None and check_integer("steps", steps, 1) != config.steps:
        check_extension(folder, cls, config.steps, steps)
        config = config.replace(steps=steps)
    data = data or load_training_data(folder, _NEW_RUN, config)
    check_resumed_data(folder, config, data)
    started = folder.finished or has_checkpoint(folder)
    supervision = parse_supervision(config.supervision, data) if started else check_supervision(cls, data, config)
    run = Run(folder, config, cls, data, supervision, new=missing is not None)
    check_memory(run)
    return run


def check_resumed_data(folder: RunFolder, config: RunConfig, data: Dataset) -> None:
    """Raise if a run is to be continued on other data; give notice if that cannot be verified."""
    if not check_data(folder, config, data, _NEW_RUN):
        text = "a run of an older version stores no digests: only number and shape of its data were compared"
        warnings.warn(text, UserNotice, stacklevel=4)


def _prepare_all(runs: Sequence[Mapping[str, Any]], out: Path, resume: bool) -> list[Run]:
    """Check all runs before the first folder is created."""
    loaded: dict[str, Dataset] = {}
    prepared: list[Run] = []
    names = {name for run in runs for name in run}
    differing = {name for name in names if any(run.get(name) != runs[0].get(name) for run in runs)}
    varied = sorted(differing - {"method", "data", "seed", "out"})
    paths: set[Path] = set()
    checked: set[str] = set()
    for given in runs:
        options = {k: v for k, v in given.items() if k not in ("method", "data", "out")}
        data = given.get("data", "sprites")
        if not isinstance(data, Dataset):
            if str(data) not in loaded:
                loaded[str(data)] = load_data(data)
            data = loaded[str(data)]
        run = prepare(given.get("method", ""), data, out=given.get("out") or out, **options)
        if not given.get("out"):
            name = folder_name(given, run.config.method, data_label(run.config), varied)
            run = run._replace(folder=RunFolder(out / name))
        path, key = run.folder.path, f"{run.config.cohort_key()} {run.config.init_from}"
        if path in paths:
            raise UserError(f"out '{path}' is given twice; runs need folders of their own", argument="out", value=path)
        if path.exists() and not (resume and is_empty(path)):
            run = _check_existing(run, resume)
        elif key not in checked:
            dry_run(run)
            checked.add(key)
        paths.add(path)
        prepared.append(run)
    _check_manifest(out, _listed(runs, prepared), resume)
    return prepared


def _listed(given: Sequence[Mapping[str, Any]], prepared: Sequence[Run]) -> list[Run]:
    """Return the runs that belong to the manifest: those without a folder of their own choice."""
    return [run for keywords, run in zip(given, prepared, strict=True) if not keywords.get("out")]


def _write_manifest(root: Path, runs: Sequence[Run], resume: bool) -> None:
    """Add these runs to the manifest of their sweep, unless the folders of all of them exist."""
    if any(run.new for run in runs):
        with manifest_lock(root):
            known = _check_manifest(root, runs, resume)
            write_manifest(root, known | {run.folder.path.name: run.config.to_json() for run in runs})


def _extend_manifest(root: Path, steps: int) -> None:
    if read_manifest(root):
        with manifest_lock(root):
            write_manifest(root, {name: stored | {"steps": steps} for name, stored in read_manifest(root).items()})


def _check_manifest(root: Path, runs: Sequence[Run], resume: bool) -> Configs:
    """Return the runs in the manifest of a folder; raise unless these runs can be added to it, or continue it."""
    known, names = read_manifest(root), {run.folder.path.name for run in runs}
    if resume and runs and (others := [name for name in known if name not in names]):
        hint = f"'{others[0]}' is not among these runs; give all runs of the sweep, or choose another folder"
        raise invalid("out", str(root), "a folder without a sweep of other runs", hint=hint)
    for run in runs:
        if run.new and run.folder.path.name in known:
            if not resume:
                hint = "a sweep was stopped there; continue it with resume=True, or with unweave train --resume"
                raise invalid("out", str(root), "a folder without these runs", hint=hint)
            stored = parse_config(known[run.folder.path.name], run.folder)
            _check_same(run, stored)
            check_resumed_data(run.folder, stored, run.data)
    return known


def _check_existing(run: Run, resume: bool) -> Run:
    """Return the run with the configuration of its folder; raise unless that holds the same run."""
    if not resume:
        raise existing_folder_error(run.folder.path)
    stored = read_config(RunFolder.open(run.folder.path))
    _check_same(run, stored)
    check_stored(run.folder, stored, run.cls)
    return run._replace(config=stored.replace(device=run.config.device), new=False)


def _check_same(run: Run, stored: RunConfig) -> None:
    if name := stored.difference(run.config):
        ours, theirs = getattr(run.config, name), getattr(stored, name)
        message = f"out '{run.folder.path}' holds another run: its {name} is {theirs!r}, not {ours!r}"
        raise UserError(message, argument=name, value=ours, accepted=repr(theirs))
    check_resumed_data(run.folder, stored, run.data)
