"""Work on a study: choose its runs, train them as fleets, score them into one table with a row a run."""

from __future__ import annotations

import json
import math
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
from unweave.errors import UserError, check_choice
from unweave.evaluation.compare import score_runs
from unweave.model import Diverged, TrainedModel
from unweave.runs import RunFolder
from unweave.studies.study import SCALES, RunSpec, Study, base_name
from unweave.training.build import find_method
from unweave.training.prepare import resolve_options
from unweave.training.progress import Progress, ProgressCallback
from unweave.training.sweep import fit

RunResult = TrainedModel | Diverged | None  # None: the time did not suffice
_PLAIN = ("method", "data", "supervision", "seed", "steps", "batch", "precision")  # columns of their own


class _TimeIsUp(Exception):
    pass


# --- which runs ----------------------------------------------------------------------------------------------------


def select_runs(
    study: Study,
    scale: str,
    *,
    only: Mapping[str, Sequence[str]] | None = None,
    seeds: Sequence[int] | None = None,
    path: str | Path | None = None,
    **options: Any,
) -> list[RunSpec]:
    """The study's runs at this scale: those that `only` names, with these seeds and options instead of their own.

    `path` is where the files of the data sets are, for sets that have files: theirs, if the runs have one such set,
    or a folder of that name for each of them.
    """
    check_choice("scale", scale, SCALES)
    runs = study.runs(scale)
    for name, values in (only or {}).items():
        runs = _only(runs, name, values)
    given = {name: value for name, value in options.items() if value is not None}
    if seeds is not None:
        alone = {json.dumps({**run, "seed": 0}, sort_keys=True): run for run in runs}
        runs = [{**run, "seed": seed} for run in alone.values() for seed in seeds]
    if path is not None:
        runs = _found_at(runs, Path(path))
    return [{**run, **given} for run in runs]


def _found_at(runs: Sequence[RunSpec], path: Path) -> list[RunSpec]:
    """The runs with the files of their data sets there."""
    calls = {run["data"]: parse_call(run["data"]) for run in runs}
    names = {name for name, _ in calls.values() if name in FILES}
    if not names:
        raise UserError(
            f"path '{path}' is given, but data '{next(iter(calls))}' has no files; choose runs whose data has"
        )
    if not path.exists():
        raise UserError(f"path '{path}' does not exist; give the folder with the files of {', '.join(sorted(names))}")
    folders = {name: path / name if (path / name).is_dir() else path for name in names}
    if missing := [name for name in sorted(names) if len(names) > 1 and folders[name] == path]:
        raise UserError(
            f"path '{path}' has no folder '{missing[0]}'; give the files of each set ({', '.join(sorted(names))}) a "
            f"folder of its name, or choose one set by only data={missing[0]}"
        )
    texts = {
        data: call_text(name, {**options, "path": str(folders[name])}) if name in FILES else data
        for data, (name, options) in calls.items()
    }
    return [{**run, "data": texts[run["data"]]} for run in runs]


def _anywhere(data: str) -> str:
    """The data set as it is called where its files need no folder named: the same on every machine."""
    name, options = parse_call(data)
    return call_text(name, {n: v for n, v in options.items() if n != "path"}) if name in FILES else data


def _only(runs: Sequence[RunSpec], name: str, values: Sequence[str]) -> list[RunSpec]:
    check_choice("only", name, sorted({name for run in runs for name in run}))
    for value in values:
        if not any(_is(run, name, value) for run in runs):
            there = ", ".join(dict.fromkeys(str(run[name]) for run in runs if name in run))
            raise UserError(f"only '{name}={value}' leaves no run; there are {there}")
    return [run for run in runs if any(_is(run, name, value) for value in values)]


def _is(run: Mapping[str, Any], name: str, value: str) -> bool:
    if name not in run:
        return False
    if name == "data":
        return value in (run[name], base_name(run[name]))
    try:
        return float(run[name]) == float(value)
    except ValueError:
        return str(run[name]) == value


def scale_name(scale: str, steps: int | None) -> str:
    """Runs of another number of steps are not the scale's: they are named apart, and never in one table with it."""
    return scale if steps is None else f"{scale}, {steps} steps"


def folder_name(study: Study, run: Mapping[str, Any]) -> str:
    """A run's folder, which does not depend on what else is trained: parts of a study fit together."""
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


class _Clock:
    """Tells of a whole study what each fleet tells of itself, and ends it when its time is up."""

    def __init__(self, runs: Sequence[RunSpec], minutes: float | None, observe: ProgressCallback | None) -> None:
        self.runs, self.observe = len(runs), observe
        self.total, self.done, self.finished, self.lost = sum(map(_steps, runs)), 0, 0, 0
        self.end = None if minutes is None else time.monotonic() + 60 * minutes

    def tick(self, record: Progress) -> None:
        done = self.done + record.done
        if self.observe:
            left = (self.total - done) / max(record.rate, 1e-9)
            finished, lost = self.finished + record.finished, self.lost + record.diverged
            whole = record._replace(runs=self.runs, finished=finished, diverged=lost, done=done, total=self.total)
            self.observe(whole._replace(remaining_seconds=left))
        if self.is_up() and record.done < record.total:  # a fleet at its end is let finish
            raise _TimeIsUp

    def is_up(self) -> bool:
        return self.end is not None and time.monotonic() >= self.end

    def close(self, cohort: Sequence[RunSpec], lost: int) -> None:
        self.done += sum(map(_steps, cohort))
        self.finished, self.lost = self.finished + len(cohort) - lost, self.lost + lost


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
    each: Callable[[list[RunSpec], list[RunResult]], None] | None = None,
) -> list[RunResult]:
    """Train what is not trained yet, fleet after fleet; what exists below `out` is gone on with.

    `each` is told of a fleet when it is finished: what it does then is not lost if a later one is interrupted.
    """
    clock, loaded = _Clock(runs, minutes, observe), dict[str, Dataset]()
    found: dict[str, RunResult] = {}
    for fleet in _fleets(study, runs, out):
        folders, text = [out / folder_name(study, run) for run in fleet], fleet[0]["data"]
        if clock.is_up():
            break
        if text not in loaded:
            loaded[text] = load_data(text)
        given = [{**run, "data": loaded[text], "out": folder} for run, folder in zip(fleet, folders, strict=True)]
        try:
            done = fit(given, strategy=strategy, resume=True, observe=clock.tick)
        except _TimeIsUp:
            break
        clock.close(fleet, sum(isinstance(run, Diverged) for run in done))
        found |= {folder.name: run for folder, run in zip(folders, done, strict=True)}
        if each:
            each(fleet, list(done))
    return [found.get(folder_name(study, run)) for run in runs]


def _fleets(study: Study, runs: Sequence[RunSpec], out: Path) -> Iterator[list[RunSpec]]:
    """What is finished is only loaded; beside runs still to train it would take up a place in their fleet."""
    for cohort in group_into_cohorts(runs):
        finished = [RunFolder(out / folder_name(study, run)).finished for run in cohort]
        for which in (True, False):
            if part := [run for run, over in zip(cohort, finished, strict=True) if over is which]:
                yield part


# --- scoring -------------------------------------------------------------------------------------------------------


def score_study(
    study: Study, scale: str, runs: Sequence[RunSpec], done: Sequence[RunResult], *, label: str, device: str
) -> pd.DataFrame:
    """A row for each run that is trained: where it belongs, what it is, the time it took, its scores."""
    kept = [(run, result) for run, result in zip(runs, done, strict=True) if result is not None]
    for _, result in kept:
        if isinstance(result, TrainedModel):  # those that were finished before come back on the CPU
            result.method.to(device)
            result.data.to(device)
    frame = score_runs([result for _, result in kept], metrics=study.metrics(scale), device=device, stored=True)
    rows = []
    for (run, result), (_, scored) in zip(kept, frame.iterrows(), strict=True):
        row = {"study": study.name, "scale": label, **_about(study, run, result), "diverged": scored["diverged"]}
        row |= {name: scored[name] for name in frame.attrs["scores"]}
        if study.extra and isinstance(result, TrainedModel):
            row |= study.extra(result)
        rows.append(row)
    return pd.DataFrame(rows)


def in_order(study: Study, runs: Sequence[RunSpec], frame: pd.DataFrame) -> pd.DataFrame:
    """The rows of a table of scores as these runs follow each other, after those of other runs."""
    place = {folder_name(study, run): n for n, run in enumerate(runs)}
    return frame.sort_values("run", key=lambda names: names.map(place).fillna(-1), kind="stable", ignore_index=True)


def _about(study: Study, run: RunSpec, result: TrainedModel | Diverged) -> dict[str, Any]:
    place, config = study.row(run), result.config
    plain = {name: run.get(name, getattr(config, name, None)) for name in _PLAIN} | {"data": _anywhere(run["data"])}
    left = {n: v for n, v in run.items() if n not in (*_PLAIN, "device", "log_every")}
    took = {"seconds": math.nan, "models": math.nan, "device": config.device, **result.folder.training_time}
    return {
        "family": place.family,
        "row": place.name,
        "run": result.folder.path.name,
        **plain,
        "settings": " ".join(f"{name}={value}" for name, value in left.items()),
        "fleet_seconds": took["seconds"],
        "models": took["models"],
        "seconds_per_model": round(took["seconds"] / took["models"], 4),
        "device": took["device"],
    }
