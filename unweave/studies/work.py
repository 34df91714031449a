"""Select the runs of a study, train them as fleets, and score each fleet after its training."""

import json
import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from unweave.contract import stages
from unweave.data import Dataset, load_data
from unweave.data.callspec import call_text, parse_call
from unweave.data.published import FILES
from unweave.errors import UserError, check_choice, invalid
from unweave.evaluation.run_table import Unscored
from unweave.model import Diverged
from unweave.runs import RunFolder
from unweave.studies.scoring import RunResult, score_study, store_scores, stored_scores
from unweave.studies.study import SCALES, RunSpec, Study, base_name
from unweave.training.build import find_method
from unweave.training.prepare import resolve_options
from unweave.training.progress import Progress, ProgressCallback
from unweave.training.sweep import fit, train_intact
from unweave.training.trainer import Result


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
            done = _train_fleet(given, folders, strategy, progress.update)
        except _TimeLimitReached:
            break
        progress.add_fleet(fleet, sum(isinstance(run, Diverged) for run in done))
        found |= {folder.name: run for folder, run in zip(folders, done, strict=True)}
        if after_fleet:
            after_fleet(fleet, list(done))
    return [found.get(folder_name(study, run)) for run in runs]


def _train_fleet(
    runs: Sequence[RunSpec], folders: Sequence[Path], strategy: str, observe: ProgressCallback
) -> list[RunResult]:
    """Train the runs of one fleet; a run whose folder is damaged does not stop the others."""

    def train(chosen: Sequence[RunSpec]) -> list[Result]:
        return fit(chosen, strategy=strategy, resume=True, observe=observe)

    paths = [RunFolder(folder) for folder in folders]
    results: list[RunResult] = []
    for run, folder, result in zip(runs, paths, train_intact(runs, paths, train), strict=True):
        if isinstance(result, UserError):
            config = resolve_options(**{name: value for name, value in run.items() if name not in ("data", "out")})
            results.append(Unscored(folder, config, str(result)))
        else:
            results.append(result)
    return results


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
        store_scores(study, root, score_study(study, scale, fleet, trained, label=label, device=device), order)

    done = train_study(study, runs, root, strategy=strategy, minutes=minutes, observe=observe, after_fleet=store)
    return sum(result is not None for result in done), stored_scores(study, root, label)
