"""Select the runs of a study, train them as fleets and score them into one table with a row per run."""

import json
import math
import re
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pandas as pd

from unweave.contract import stages
from unweave.data import Dataset, load_data
from unweave.data.callspec import call_text, parse_call
from unweave.data.published import FILES
from unweave.errors import UserError, UserNotice, check_choice, invalid
from unweave.evaluation.compare import score_runs
from unweave.evaluation.run_table import unscored_notice
from unweave.model import Diverged, TrainedModel
from unweave.runs import RunFolder, write_atomic
from unweave.runs.lock import lock
from unweave.studies.study import SCALES, RunSpec, Study, base_name
from unweave.studies.table import check_settings, read_scores
from unweave.training.build import find_method
from unweave.training.prepare import resolve_options
from unweave.training.progress import Progress, ProgressCallback
from unweave.training.sweep import fit

RunResult = TrainedModel | Diverged | None  # None: not trained within the time limit
_OWN_COLUMNS = ("method", "data", "supervision", "seed", "steps", "batch", "precision")  # columns of their own


class _TimeLimitReached(Exception):
    pass


# --- selection -----------------------------------------------------------------------------------------------------


def select_runs(
    study: Study,
    scale: str,
    *,
    only: Mapping[str, Sequence[str]] | None = None,
    seeds: Sequence[int] | None = None,
    path: str | Path | None = None,
    **options: Any,
) -> list[RunSpec]:
    """Return the study's runs at this scale, restricted to those in `only`, with these seeds and options.

    `path` is the folder with the files of the data set, or with a folder for each data set if there are several.
    """
    check_choice("scale", scale, SCALES)
    runs = study.runs(scale)
    for name, values in (only or {}).items():
        runs = _only(runs, name, values)
    given = {name: value for name, value in options.items() if value is not None}
    if seeds is not None:
        distinct = {json.dumps({**run, "seed": 0}, sort_keys=True): run for run in runs}
        runs = [{**run, "seed": seed} for run in distinct.values() for seed in seeds]
    if path is not None:
        runs = _with_path(runs, Path(path))
    return [{**run, **given} for run in runs]


def _with_path(runs: Sequence[RunSpec], path: Path) -> list[RunSpec]:
    """Return the runs with the paths of their data files set."""
    calls = {run["data"]: parse_call(run["data"]) for run in runs}
    names = {name for name, _ in calls.values() if name in FILES}
    if not names:
        raise invalid("path", str(path), f"left out: data '{next(iter(calls))}' has no files")
    listing = ", ".join(sorted(names))
    if not path.exists():
        raise invalid("path", str(path), f"an existing folder with the files of {listing}")
    folders = {name: path / name if (path / name).is_dir() else path for name in names}
    if missing := [name for name in sorted(names) if len(names) > 1 and folders[name] == path]:
        hint = f"there is none for {missing[0]}; select one data set with only data={missing[0]}"
        raise invalid("path", str(path), f"a folder with one folder for each of {listing}", hint=hint)
    texts = {
        data: call_text(name, {**options, "path": str(folders[name])}) if name in FILES else data
        for data, (name, options) in calls.items()
    }
    return [{**run, "data": texts[run["data"]]} for run in runs]


def _without_path(data: str) -> str:
    """Return the data set without the path of its files: the same text on every machine."""
    name, options = parse_call(data)
    return call_text(name, {n: v for n, v in options.items() if n != "path"}) if name in FILES else data


def _only(runs: Sequence[RunSpec], name: str, values: Sequence[str]) -> list[RunSpec]:
    check_choice("only", name, sorted({name for run in runs for name in run}))
    for value in values:
        if not any(_matches(run, name, value) for run in runs):
            known = ", ".join(dict.fromkeys(str(run[name]) for run in runs if name in run))
            raise invalid("only", f"{name}={value}", f"{name} with a value of the study's runs ({known})")
    return [run for run in runs if any(_matches(run, name, value) for value in values)]


def _matches(run: Mapping[str, Any], name: str, value: str) -> bool:
    if name not in run:
        return False
    if name == "data":
        return value in (run[name], base_name(run[name]))
    try:
        return float(run[name]) == float(value)
    except ValueError:
        return str(run[name]) == value


def folder_name(study: Study, run: Mapping[str, Any]) -> str:
    """Return the folder name of a run, which does not depend on the other runs that are trained."""
    words = study.row(run).name.replace(" on ", "-").replace("=", "").replace(",", " ")
    return f"{re.sub(r'[^A-Za-z0-9_.]+', '-', words)}-seed{run['seed']}"


def group_into_cohorts(runs: Sequence[RunSpec]) -> list[list[RunSpec]]:
    """Group the runs that may train as one fleet."""
    groups: dict[tuple[str, str], list[RunSpec]] = {}
    for run in runs:
        config = resolve_options(**{name: value for name, value in run.items() if name != "data"})
        groups.setdefault((run["data"], config.cohort_key()), []).append(run)
    return list(groups.values())


# --- training ------------------------------------------------------------------------------------------------------


class _StudyProgress:
    """Converts the progress of a fleet to that of the study, and stops the study after its time limit."""

    def __init__(self, runs: Sequence[RunSpec], minutes: float | None, observe: ProgressCallback | None) -> None:
        self.runs, self.observe = len(runs), observe
        self.total, self.done, self.finished, self.diverged = sum(map(_steps, runs)), 0, 0, 0
        self.end = None if minutes is None else time.monotonic() + 60 * minutes

    def update(self, record: Progress) -> None:
        done = self.done + record.done
        if self.observe:
            left = (self.total - done) / max(record.rate, 1e-9)
            finished, diverged = self.finished + record.finished, self.diverged + record.diverged
            total = record._replace(runs=self.runs, finished=finished, diverged=diverged, done=done, total=self.total)
            self.observe(total._replace(remaining_seconds=left))
        if self.time_is_over() and record.done < record.total:  # a fleet after its last step may finish
            raise _TimeLimitReached

    def time_is_over(self) -> bool:
        return self.end is not None and time.monotonic() >= self.end

    def add_fleet(self, cohort: Sequence[RunSpec], diverged: int) -> None:
        self.done += sum(map(_steps, cohort))
        self.finished += len(cohort) - diverged
        self.diverged += diverged


def _steps(run: Mapping[str, Any]) -> int:
    return run["steps"] * len(stages(find_method(run["method"])))


def train_study(
    study: Study,
    runs: Sequence[RunSpec],
    out: Path,
    *,
    strategy: str = "auto",
    minutes: float | None = None,
    observe: ProgressCallback | None = None,
    after_fleet: Callable[[list[RunSpec], list[RunResult]], None] | None = None,
) -> list[RunResult]:
    """Train the runs that are not finished, fleet after fleet; runs that exist below `out` are continued.

    `after_fleet` is called after each fleet, so that its results are not lost if a later fleet is interrupted.
    """
    progress, loaded = _StudyProgress(runs, minutes, observe), dict[str, Dataset]()
    found: dict[str, RunResult] = {}
    for fleet in _fleets(study, runs, out):
        folders, text = [out / folder_name(study, run) for run in fleet], fleet[0]["data"]
        if progress.time_is_over():
            break
        if text not in loaded:
            loaded[text] = load_data(text)
        given = [{**run, "data": loaded[text], "out": folder} for run, folder in zip(fleet, folders, strict=True)]
        try:
            done = fit(given, strategy=strategy, resume=True, observe=progress.update)
        except _TimeLimitReached:
            break
        progress.add_fleet(fleet, sum(isinstance(run, Diverged) for run in done))
        found |= {folder.name: run for folder, run in zip(folders, done, strict=True)}
        if after_fleet:
            after_fleet(fleet, list(done))
    return [found.get(folder_name(study, run)) for run in runs]


def _fleets(study: Study, runs: Sequence[RunSpec], out: Path) -> Iterator[list[RunSpec]]:
    """Return the fleets; finished runs, which are only loaded, form fleets of their own."""
    for cohort in group_into_cohorts(runs):
        finished = [RunFolder(out / folder_name(study, run)).finished for run in cohort]
        for which in (True, False):
            if part := [run for run, over in zip(cohort, finished, strict=True) if over is which]:
                yield part


def run_study(
    study: Study,
    scale: str,
    runs: Sequence[RunSpec],
    root: Path,
    *,
    steps: int | None,
    device: str,
    strategy: str = "auto",
    minutes: float | None = None,
    observe: ProgressCallback | None = None,
) -> tuple[int, pd.DataFrame | None]:
    """Train and score these runs; update scores.csv after each fleet. Return the number of trained runs and the table.

    Runs of another scale in the folder are an error.
    """
    label = scale if steps is None else f"{scale}, {steps} steps"  # since scores of both are not to be mixed
    stored_scores(study, root, label)  # raises for another scale
    order = [folder_name(study, run) for run in runs]

    def store(fleet: Sequence[RunSpec], trained: Sequence[RunResult]) -> None:
        _store_scores(study, root, score_study(study, scale, fleet, trained, label=label, device=device), order)

    done = train_study(study, runs, root, strategy=strategy, minutes=minutes, observe=observe, after_fleet=store)
    return sum(result is not None for result in done), stored_scores(study, root, label)


def stored_scores(study: Study, root: Path, label: str) -> pd.DataFrame | None:
    """Return the table in a folder, which must be of this scale; None if there is none yet."""
    frame = read_scores(study, [root]) if (root / "scores.csv").is_file() else None
    if frame is not None and (other := frame["scale"].iloc[0]) != label:
        raise invalid("scale", label, other, context=f"out '{root}' has runs of another scale")
    return frame


@contextmanager
def scores_lock(root: Path) -> Iterator[None]:
    """Let no other process change the tables in a folder during the block."""
    root.mkdir(parents=True, exist_ok=True)
    with lock(root / ".scores.csv.lock"):
        yield


def _store_scores(study: Study, root: Path, scored: pd.DataFrame, order: Sequence[str]) -> None:
    """Add rows to scores.csv, to which other processes may have added theirs; rows of the same runs are replaced.

    Rows of other runs come first, then those of the runs in `order`.
    """
    with scores_lock(root):
        before = stored_scores(study, root, str(scored["scale"].iloc[0]))
        if before is not None:
            scored = pd.concat([before[~before["run"].isin(scored["run"])], scored], ignore_index=True)
        check_settings(scored, str(root))
        ranks = {name: rank for rank, name in enumerate(order)}
        frame = scored.sort_values("run", key=lambda names: names.map(ranks).fillna(-1), kind="stable")
        write_atomic(root / "scores.csv", frame.to_csv(index=False).encode())


# --- scoring -------------------------------------------------------------------------------------------------------


def score_study(
    study: Study, scale: str, runs: Sequence[RunSpec], done: Sequence[RunResult], *, label: str, device: str
) -> pd.DataFrame:
    """Return a table with a row per trained run: its row in the study, settings, training time and scores."""
    kept = [(run, result) for run, result in zip(runs, done, strict=True) if result is not None]
    for _, result in kept:
        if isinstance(result, TrainedModel):  # runs that were finished before are on the CPU
            result.method.to(device)
            result.data.to(device)
    frame = score_runs([result for _, result in kept], metrics=study.metrics(scale), device=device, stored=True)
    rows = []
    for (run, result), (_, scored) in zip(kept, frame.iterrows(), strict=True):
        row = {"study": study.name, "scale": label, **_run_columns(study, run, result)}
        row |= {name: scored[name] for name in ("diverged", "not_scored", *frame.attrs["scores"])}
        if study.extra and isinstance(result, TrainedModel) and not row["not_scored"]:
            row |= _extra_scores(study.extra, result)
        rows.append(row)
    return pd.DataFrame(rows)


def _extra_scores(extra: Callable[[TrainedModel], Mapping[str, float]], run: TrainedModel) -> Mapping[str, Any]:
    """Return the scores that only this study has, or the reason why they cannot be computed."""
    try:
        return extra(run)
    except UserError as error:
        warnings.warn(unscored_notice(run.folder.path, str(error)), UserNotice, stacklevel=2)
        return {"not_scored": str(error)}


def _run_columns(study: Study, run: RunSpec, result: TrainedModel | Diverged) -> dict[str, Any]:
    row, config = study.row(run), result.config
    columns = {name: run.get(name, getattr(config, name, None)) for name in _OWN_COLUMNS}
    left = {n: v for n, v in run.items() if n not in (*_OWN_COLUMNS, "device", "log_every")}
    took = {"seconds": math.nan, "models": math.nan, "device": config.device, **result.folder.training_time}
    return {
        "family": row.family,
        "row": row.name,
        "run": result.folder.path.name,
        **columns,
        "data": _without_path(run["data"]),
        "data_digest": config.data_digest,
        "settings": " ".join(f"{name}={value}" for name, value in left.items()),
        "fleet_seconds": took["seconds"],
        "models": took["models"],
        "seconds_per_model": round(took["seconds"] / took["models"], 4),
        "device": took["device"],
    }
