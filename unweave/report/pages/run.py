"""The one-file HTML report of one or several runs."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from unweave.config import RunConfig
from unweave.errors import UserError
from unweave.evaluation.evaluate import Evaluation, evaluate
from unweave.methods import METHODS
from unweave.metrics import METRICS
from unweave.model import TrainedModel, checkpoint_step, load
from unweave.report import words
from unweave.report.charts.curves import Curve, charts, columns, read_curves
from unweave.report.images import (
    Picture,
    adjusted_information,
    coordinate_names,
    latent_order,
    picture,
    reconstruction_rows,
    strip,
    traverse,
)
from unweave.report.panels.assemble import classes_panel, latent_map_panel, parts_panel
from unweave.runs import write_atomic

HERE = Path(__file__).parents[1] / "templates"
MOST_SHOWN = 12  # latents in use; the others can be unfolded
STARTS = 3  # images from which each latent is moved
MOST_PIXELS = 4_800_000  # values in all traversals of a page; beyond, fewer start images keep the file small


class Run(NamedTuple):
    """One run with all that its part of the page is made of."""

    trained: TrainedModel
    result: Evaluation
    curves: dict[str, Curve]
    done: int  # steps


def report(
    runs: Sequence[str | Path | TrainedModel],
    out: str | Path,
    *,
    seed: int = 0,
    device: str = "cpu",
    title: str | None = None,
) -> Path:
    """Write one self-contained HTML page about the runs: scores, pictures, curves, and how to repeat them."""
    if isinstance(runs, str | Path | TrainedModel):
        runs = [runs]
    if not runs:
        raise UserError("runs is empty; give at least one run folder")
    path = Path(out)
    if path.is_dir():
        raise UserError(f"out '{out}' is a folder; give the name of a file, such as report.html")
    gathered = [_gather(run, number, seed, device) for number, run in enumerate(runs)]
    page = render(gathered, seed=seed, title=title)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomic(path, page.encode())
    except OSError as error:
        raise UserError(f"out '{out}' cannot be written: {error.strerror or error}; choose another file") from error
    return path


def _gather(run: str | Path | TrainedModel, number: int, seed: int, device: str) -> Run:
    trained = run if isinstance(run, TrainedModel) else load(run, device=device)
    # a run folder may belong to somebody else: then the scores go on the page only
    result = evaluate(trained, seed=seed, save=os.access(trained.folder.path, os.W_OK))
    logs = trained.folder.logs()
    return Run(trained, result, read_curves(logs, number), checkpoint_step(trained.folder))


def render(runs: Sequence[Run], *, seed: int, title: str | None) -> str:
    """The page's HTML."""
    environment = Environment(
        loader=FileSystemLoader(HERE), autoescape=True, trim_blocks=True, lstrip_blocks=True, undefined=StrictUndefined
    )
    environment.globals["columns"] = columns
    environment.filters |= {"number": words.format_number, "percent": words.percent, "pretty": words.pretty}
    configs = [run.trained.config for run in runs]
    labels = words.run_labels(configs, [run.trained.folder.path.name for run in runs])
    starts = _starts(runs)
    sections = [_section(run, i, labels[i], seed, starts) for i, run in enumerate(runs)]
    return environment.get_template("report.html").render(
        title=title or _title(runs),
        style=Markup((HERE / "report.css").read_text()),  # our own file: the only text that is not escaped
        sections=sections,
        comparison=_comparison(runs, labels) if len(runs) > 1 else None,
        seed=seed,
    )


def _starts(runs: Sequence[Run]) -> int:
    """How many start images the page can afford; with one, several runs are shown only beneath each other."""
    values = sum(9 * math.prod(run.trained.data.shape) * min(MOST_SHOWN, int(run.result.active.sum())) for run in runs)
    again = 1 if len(runs) > 1 else 0
    return next((n for n in range(STARTS, 1, -1) if values * (n + again) <= MOST_PIXELS), 1)


def _title(runs: Sequence[Run]) -> str:
    methods = list(dict.fromkeys(words.method_title(run.trained.config.method) for run in runs))
    data = list(dict.fromkeys(run.trained.config.data for run in runs))
    names = words.join_words(methods) if len(methods) <= 3 else f"{len(methods)} methods"
    return f"{names} on {words.join_words(data)}"


# --- one run -------------------------------------------------------------------------------------------------------


def _section(run: Run, number: int, label: str, seed: int, starts: int) -> dict[str, Any]:
    trained, result, config = run.trained, run.result, run.trained.config
    cls = METHODS.get(config.method)
    side = 6 if starts > 1 else 4  # images down and across a grid of swaps
    return {
        "number": number,
        "label": label,
        "folder": trained.folder.path.name,
        "run_summary": words.run_summary(config, trained.data, trained.method.needs, run.done),
        "about": words.method_about(config.method),
        "facts": _facts(config, trained.folder.training_time),
        "scores": _scores(result),
        "used": _used(trained, result),
        "measured": bool(np.isfinite(result.latent_information).any()),
        "findings": words.findings(result, _latent_shares(trained, result)),
        "latents": _latents(trained, result, seed, starts),
        "most": MOST_SHOWN,
        "starts": starts,
        "parts": parts_panel(trained, result, seed, side),
        "classes": classes_panel(trained, seed, side),
        "latent_map": latent_map_panel(trained, result, seed),
        "rebuilt": _rebuilt(trained, seed),
        "matrix": _matrix(trained, result),
        "factors": [words.pretty(name) for name in result.factor_names],
        "rows": _counted(result),
        "charts": charts([run.curves]),
        "command": config.command() if cls else None,
        "device": config.device,
        "paper": cls.paper if cls else "",
        "equation": type(trained.method).equation,
        "settings": config.shown_settings(),
        "config": json.dumps(config.to_json(), indent=2),
    }


def _used(trained: TrainedModel, result: Evaluation) -> tuple[int, int]:
    """How many latents carry anything, of how many; classes are not counted."""
    counted = [not is_class for _, is_class in coordinate_names(trained)]
    return int(result.active[counted].sum()), sum(counted)


def _facts(config: RunConfig, took: dict[str, Any]) -> list[str]:
    versions = config.versions
    names = (("unweave", "Unweave"), ("torch", "PyTorch"), ("python", "Python"), ("git", "commit"))
    told = [f"{shown} {versions[name]}" for name, shown in names if versions.get(name)]
    return [words.when(config.created), words.trained_in(took) or config.device, *told]


def _scores(result: Evaluation) -> list[dict[str, Any]]:
    found = []
    for name, value in result.scores.items():
        metric = METRICS[name]
        span = (value - metric.worst) / (metric.best - metric.worst)
        share = min(1.0, max(0.0, span)) if math.isfinite(span) else 0.0
        found.append({"title": metric.title, "value": value, "share": share, "sentence": metric.description})
    return found


def _latents(trained: TrainedModel, result: Evaluation, seed: int, starts: int) -> list[dict[str, Any]]:
    """Every latent, most informative first; those that are folded away are shown from one start image only.

    Probabilities of classes are left out: they cannot be moved one at a time.
    """
    if trained.representation.decode is None:
        return []
    known_ZK, most = adjusted_information(result), float(np.nanmax([*result.latent_information, 1e-9]))
    named, found = coordinate_names(trained), []
    movable = [z for z in latent_order(result) if not named[z][1]]
    unfolded = [z for z in movable if result.active[z]][:MOST_SHOWN]
    for moved in traverse(trained, movable, starts=starts, seed=seed):
        z = moved.latent
        k = int(known_ZK[z].argmax()) if result.factor_names else None
        found.append(
            {
                "name": f"z{z}",
                "part": named[z][0],
                "alive": bool(result.active[z]),
                "nats": float(result.latent_information[z]),
                "weight": float(np.nan_to_num(result.latent_information[z] / most)),
                "factor": "" if k is None else words.pretty(result.factor_names[k]),
                "share": 0.0 if k is None else float(known_ZK[z, k]),
                "low": moved.low,
                "high": moved.high,
                "strips": [picture(strip(images)) for images in (moved.strips if z in unfolded else moved.strips[:1])],
            }
        )
    return found


def _rebuilt(trained: TrainedModel, seed: int) -> list[tuple[str, Picture]]:
    if trained.representation.decode is None:
        return []
    originals, rebuilt = reconstruction_rows(trained, seed=seed)
    return [("original", picture(strip(originals))), ("reconstruction", picture(strip(rebuilt)))]


def _counted(result: Evaluation) -> str:
    """How many images the information is counted on: fewer where a factor is not known of all."""
    known = [] if result.known is None else result.known.tolist()
    few, most = min(known, default=result.rows), max(known, default=result.rows)
    return f"{few:,}" if few == most else f"{few:,} to {most:,}"


def _latent_shares(trained: TrainedModel, result: Evaluation) -> np.ndarray:
    """What latents know of factors; classes, of which each knows a little by itself, are told elsewhere."""
    is_class_Z = np.array([is_class for _, is_class in coordinate_names(trained)])
    return np.where(is_class_Z[:, None], 0.0, adjusted_information(result))


def _matrix(trained: TrainedModel, result: Evaluation) -> list[dict[str, Any]]:
    known_ZK, named = _latent_shares(trained, result), coordinate_names(trained)
    best = known_ZK.argmax(0)
    return [
        {
            "name": f"z{z}",
            "alive": bool(result.active[z]),
            "cells": [
                (float(v), bool(best[k] == z and v >= words.PARTIAL_THRESHOLD and result.active[z]))
                for k, v in enumerate(known_ZK[z])
            ],
        }
        for z in latent_order(result)
        if not named[z][1]
    ]


# --- several runs --------------------------------------------------------------------------------------------------


def _comparison(runs: Sequence[Run], labels: Sequence[str]) -> dict[str, Any]:
    configs = [run.trained.config for run in runs]
    results = [run.result for run in runs]
    same_data = len({(c.data, json.dumps(c.data_options, sort_keys=True)) for c in configs}) == 1
    columns = [(METRICS[name].title, [r.scores.get(name, math.nan) for r in results]) for name in results[0].scores]
    return {
        "sentences": words.comparison(labels, results, same_data),
        "shared": words.in_common(configs),
        "comparable": same_data,
        "columns": [(title, _marked(values, same_data)) for title, values in columns],
        "recon_errors": _lost(runs, same_data),
        "differences": words.differences(configs),
        "charts": charts([run.curves for run in runs]),
    }


def _marked(values: Sequence[float], comparable: bool, sign: int = 1, digits: int = 2) -> list[tuple[float, bool]]:
    """Each value, and whether it is the best of them to the digits shown."""
    known = [sign * round(v, digits) for v in values if math.isfinite(v)]
    worth = comparable and len(set(known)) > 1
    return [(v, worth and math.isfinite(v) and sign * round(v, digits) == max(known)) for v in values]


def _lost(runs: Sequence[Run], same_data: bool) -> list[tuple[float, bool]] | None:
    """The last logged reconstruction error of each run, where they are errors of the same kind."""
    kinds = {run.trained.config.arguments.get("likelihood") for run in runs}
    if not same_data or len(kinds) > 1 or not all("recon" in run.curves for run in runs):
        return None
    return _marked([float(run.curves["recon"].values[-1]) for run in runs], same_data, sign=-1, digits=1)
