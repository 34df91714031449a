"""Train many runs together: a sweep over settings and seeds as a few fleets, ending in ordinary run folders."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from unweave.data import Dataset, load_data
from unweave.engine.replicas import STRATEGIES
from unweave.errors import UserError, check_choice
from unweave.methods import variant
from unweave.model import Diverged, TrainedModel
from unweave.nn.networks import GLOROT
from unweave.runs import RunFolder
from unweave.training.build import find_device, find_method, is_streamed
from unweave.training.cohort import ProgressCallback, Run, cohort_key, train_all
from unweave.training.trainer import data_label, dry_run, make_folder, prepare


def expand(settings: Mapping[str, Sequence[Any]], seeds: Iterable[int]) -> list[dict[str, Any]]:
    """Every combination of the settings' values, each with every seed."""
    names = list(settings)
    return [
        {**dict(zip(names, values, strict=True)), "seed": seed}
        for values in itertools.product(*settings.values())
        for seed in seeds
    ]


def folder_name(run: Mapping[str, Any], method: str, data: str, varied: Sequence[str]) -> str:
    """A run's name in its sweep: method, data, what varies, seed."""
    words = [f"{name}{run[name]}".replace("/", "_").replace(" ", "") for name in varied if name in run]
    return "-".join([method, data, *words, f"seed{run.get('seed', 0)}"])


def fit(
    runs: Sequence[Mapping[str, Any]],
    *,
    out: str | Path = "runs",
    strategy: str = "auto",
    resume: bool = False,
    observe: ProgressCallback | None = None,
) -> list[TrainedModel | Diverged]:
    """Train runs together; each is the keywords of `train` ("method", "data", "seed", "beta", ...).

    Every run ends as a folder below `out`, as if it had been trained alone. With resume=True folders that exist
    are gone on with; without, they are an error.
    """
    if not runs:
        raise UserError("runs is empty; give at least one, such as {'method': 'beta_vae', 'seed': 0}")
    check_choice("strategy", strategy, ("auto", *STRATEGIES))
    wanted = _prepared(runs, Path(out), resume)
    return train_all([_open_or_create(run) for run in wanted], strategy, observe)


def resume_all(
    paths: Sequence[str | Path],
    *,
    strategy: str = "auto",
    device: str | None = None,
    observe: ProgressCallback | None = None,
) -> list[TrainedModel | Diverged]:
    """Go on with runs that were interrupted, together; finished ones are returned as they are."""
    check_choice("strategy", strategy, ("auto", *STRATEGIES))
    loaded: dict[str, Dataset] = {}
    runs = []
    for path in paths:
        folder = RunFolder.open(path)
        config = folder.config
        config["device"] = find_device(device or config["device"], config["precision"])
        name = json.dumps([config["data"], config["data_options"]], sort_keys=True, default=str)
        if name not in loaded:
            loaded[name] = load_data(config["data"], **config["data_options"])
        cls = variant(find_method(config["method"]), config["arguments"])
        runs.append(Run(folder, config, cls, loaded[name]))
    return train_all(runs, strategy, observe)


def _prepared(runs: Sequence[Mapping[str, Any]], out: Path, resume: bool) -> list[Run]:
    """All runs checked before the first folder is made."""
    loaded: dict[str, Dataset] = {}
    found: list[Run] = []
    varied = sorted({n for run in runs for n in run if any(r.get(n) != run[n] for r in runs)} - {"seed", "out"})
    varied = [n for n in varied if n not in ("method", "data")]
    rehearsed: set[str] = set()
    for given in runs:
        options = {k: v for k, v in given.items() if k not in ("method", "data", "out")}
        name = given.get("data", "sprites")
        data = name if isinstance(name, Dataset) else loaded.setdefault(str(name), load_data(name))
        config, cls, data = prepare(given["method"], data, **options)
        if config["device"].startswith("cuda") and is_streamed(data):
            raise UserError(
                f"data '{name}' is not to be held on the device, which a fleet needs; train its runs one by one"
            )
        path = Path(given.get("out") or out / folder_name(given, config["method"], data_label(config), varied))
        run = Run(RunFolder(path), config, cls, data)
        if path in {other.folder.path for other in found}:
            raise UserError(f"out '{path}' is given twice; runs of a fleet need folders of their own")
        if path.exists():
            run = _existing(run, resume)
        elif (key := cohort_key(run)) not in rehearsed:
            dry_run(config, cls, data)
            rehearsed.add(key)
        found.append(run)
    return found


def _existing(run: Run, resume: bool) -> Run:
    """A folder to go on with: it must hold the same run."""
    path = run.folder.path
    if not resume:
        raise UserError(f"out '{path}' exists already; give another folder, or go on with it with --resume")
    stored = {"init": GLOROT, **RunFolder.open(path).config}  # older runs do not say how theirs started
    ours = json.loads(json.dumps(run.config))
    for name in ("created", "versions", "device", "engine", "left_out"):
        ours[name] = stored.get(name)
    if different := [name for name in ours if ours[name] != stored.get(name)]:
        name = different[0]
        raise UserError(f"out '{path}' is another run: its {name} is {stored.get(name)!r}, not {ours[name]!r}")
    return run._replace(config={**stored, "device": run.config["device"]})


def _open_or_create(run: Run) -> Run:
    if not run.folder.path.exists():
        make_folder(run.folder.path, run.config, run.data)
    return run
