"""The report: one HTML file about one or several runs."""

import math
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any

from unweave.config import RunConfig
from unweave.contract import is_supervised
from unweave.data.storage.digest import SAMPLED_NOTE, is_sampled
from unweave.errors import UserError, UserNotice, invalid
from unweave.evaluation.run_table import AnyRun, Unscored, data_labels, error_text, unscored_notice
from unweave.model import Diverged, TrainedModel
from unweave.report.formatting import DASH, NARROW, format_number, join_words, method_title, pretty, short_title
from unweave.report.panels import render_panels
from unweave.report.render import check_file, write_page
from unweave.report.traversals import MAX_LATENTS
from unweave.report.views import ComparisonView, RunView, view_run

STARTS = 3  # largest number of start images per traversal
MAX_VALUES = 4_800_000  # in all traversals of a page; larger pages have fewer start images


def report(
    runs: Sequence[str | Path | AnyRun],
    out: str | Path,
    *,
    seed: int = 0,
    device: str = "cpu",
    title: str | None = None,
) -> Path:
    """Write a self-contained HTML page about runs: scores, images, training curves, and how to reproduce them.

    One of several runs that cannot be loaded or scored is left out; the page and a UserNotice say so.
    """
    if isinstance(runs, str | Path | TrainedModel):
        runs = [runs]
    if not runs:
        raise invalid("runs", runs, "at least one run folder")
    path = check_file(out)
    views, left_out = _view_runs(runs, seed, device)
    several, starts = len(views) > 1, _start_images(views)
    labels = run_labels([run.trained.config for run in views], [run.trained.folder.path.name for run in views])
    views = [
        replace(run, label=label, starts=starts, several=several) for run, label in zip(views, labels, strict=True)
    ]
    comparison = _comparison(ComparisonView(views)) if several else None
    articles = [(view, run_summary(view), _facts(view), render_panels("run", view, 2 + several)) for view in views]
    title = title or _title(views)
    texts = {"title": title, "seed": seed, "left_out": left_out}
    return write_page("run", path, **texts, comparison=comparison, articles=articles)


def _view_runs(runs: Sequence[str | Path | AnyRun], seed: int, device: str) -> tuple[list[RunView], list[str]]:
    """Return a view of each run that can be shown, and a line for each of the others."""
    views: list[RunView] = []
    left_out = []
    for k, run in enumerate(runs):
        path = run if isinstance(run, str | Path) else run.folder.path
        try:
            views.append(_view(run, len(views), seed, device))
        except (UserError, OSError) as error:
            if not views and k == len(runs) - 1:  # no other run can be shown
                raise
            left_out.append(unscored_notice(path, error_text(error), "left out"))
            warnings.warn(left_out[-1], UserNotice, stacklevel=3)
    return views, left_out


def _view(run: str | Path | AnyRun, number: int, seed: int, device: str) -> RunView:
    if isinstance(run, Unscored | Diverged):
        reason = run.reason if isinstance(run, Unscored) else f"it diverged at step {run.step:,}"
        raise UserError(reason, argument="run", value=str(run.folder.path), accepted="a run that can be scored")
    return view_run(run, number=number, seed=seed, device=device)


def _start_images(runs: Sequence[RunView]) -> int:
    """Return how many start images per traversal keep the page small; with one, several runs have no own traversals."""
    values = sum(9 * math.prod(run.trained.data.shape) * min(MAX_LATENTS, int(run.result.active.sum())) for run in runs)
    return next((n for n in range(STARTS, 1, -1) if values * (n + (len(runs) > 1)) <= MAX_VALUES), 1)


def _title(runs: Sequence[RunView]) -> str:
    methods = list(dict.fromkeys(method_title(run.trained.config.method) for run in runs))
    data = list(dict.fromkeys(_data_names([run.trained.config for run in runs])))
    names = join_words(methods) if len(methods) <= 3 else f"{len(methods)} methods"
    return f"{names} on {join_words(data)}"


def _data_names(configs: Sequence[RunConfig]) -> list[str]:
    return data_labels([c.data_text() for c in configs], [c.data_digest for c in configs])


def run_labels(configs: Sequence[RunConfig], folders: Sequence[str]) -> list[str]:
    """Return a unique label for each run: its method and as few settings as possible, or its folder."""
    rows = [config.shown_settings() for config in configs]
    labels = [method_title(config.method) for config in configs]
    names = dict.fromkeys(n for row in rows for n in row if n != "method")
    for name in sorted(names, key=lambda name: name == "learning rate"):  # which often follows from other settings
        for label in [label for label in labels if labels.count(label) > 1]:
            same = [i for i, other in enumerate(labels) if other == label]
            if len({rows[i].get(name) for i in same}) > 1:
                for i in same:
                    labels[i] = f"{label}, {name} {rows[i].get(name, DASH)}"
    unique = len(set(labels)) == len(labels)
    return labels if unique else [f"{label} ({folder})" for label, folder in zip(labels, folders, strict=True)]


def _facts(run: RunView) -> list[str]:
    """Return when, for how long and with which versions the run was trained."""
    config, names = run.trained.config, {"unweave": "Unweave", "torch": "PyTorch", "python": "Python", "git": "commit"}
    versions = [f"{shown} {config.versions[name]}" for name, shown in names.items() if config.versions.get(name)]
    return [_date(config.created), training_time(run.trained.folder.training_time) or config.device, *versions]


def run_summary(run: RunView) -> str:
    """Describe the method, the data and the supervision in sentences."""
    config, data, needs = run.trained.config, run.trained.data, run.trained.method.needs
    channels, height, width = data.shape
    colour = "grey" if channels == 1 else "colour"
    factors = join_words([pretty(name) for name in data.factor_names])
    unfinished = "" if run.step >= config.steps else f" The run is unfinished: it is at step {run.step:,}."
    sampled = f" {SAMPLED_NOTE[0].upper()}{SAMPLED_NOTE[1:]}." if is_sampled(run.result.data_digest) else ""
    explained, unit = "No supervision was used.", "images"
    if is_supervised(needs):
        explained, unit = run.trained.supervision.explain(data), run.trained.supervision.unit
    return (
        f"{method_title(config.method)} on {config.data} ({height} × {width}, {colour}), "
        f"{config.steps:,} steps with batches of {config.batch:,} {unit}, seed {config.seed}.{unfinished} "
        f"The data set has {data.size:,} images {f'that differ in {factors}' if factors else 'without known factors'}. "
        f"{explained}{sampled}"
    )


def _date(created: str) -> str:
    """Return 2026-03-01T14:05:00Z as "1 March 2026, 14:05 UTC" and any other text unchanged."""
    try:
        moment = datetime.strptime(created, "%Y-%m-%dT%H:%M:%SZ")
    except ValueError:
        return created
    return f"{moment.day} {moment:%B %Y, %H:%M} UTC"


def training_time(record: Mapping[str, Any]) -> str:
    """Return {"seconds": 83, "models": 10, "device": "cpu"} as "10 models in 1 min 23 s on CPU", {} as ""."""
    if not {"seconds", "models", "device"} <= record.keys():
        return ""
    total = max(1, round(record["seconds"]))
    parts = [(total // 3600, "h"), (total // 60 % 60, "min"), (total % 60, "s")]
    first = next(number for number, (count, _) in enumerate(parts) if count)
    span = " ".join(f"{count}{NARROW}{unit}" for count, unit in parts[first : first + 2] if count)
    models = f"{record['models']} models in " if record["models"] > 1 else ""
    return f"{models}{span} on {'CPU' if record['device'] == 'cpu' else record['device']}"


def _comparison(page: ComparisonView) -> dict[str, Any]:
    labels, scores = [run.label for run in page.runs], [run.result.scores for run in page.runs]
    sentences = comparison_sentences(labels, scores, page.same_data)
    common = _common_settings([run.trained.config for run in page.runs])
    return {"sentences": sentences, "common": common, "panels": render_panels("comparison", page)}


def comparison_sentences(labels: Sequence[str], scores: Sequence[Mapping[str, float]], same_data: bool) -> list[str]:
    """Compare runs metric by metric, and say how far to trust the comparison."""
    if not same_data:
        return ["These runs were trained on different data, so their scores cannot be compared."]
    known = [(name, [(run.get(name, math.nan), label) for run, label in zip(scores, labels)]) for name in scores[0]]
    ranked = [(name, sorted((v for v in values if math.isfinite(v[0])), key=lambda v: -v[0])) for name, values in known]
    sentences = [_verdict(short_title(name), values) for name, values in ranked if len(values) > 1]
    return [*sentences, "Each run has one seed. Scores vary between seeds, so a small difference may be chance."]


def _verdict(title: str, ranked: Sequence[tuple[float, str]]) -> str:
    """Compare runs by one metric; `ranked` are their scores and labels from best to worst."""
    numbers, label = [format_number(value) for value, _ in ranked], ranked[0][1]
    equal = [other for number, (_, other) in zip(numbers, ranked) if number == numbers[0]]
    if len(equal) > 1:
        return f"{join_words(equal)} have equal {title}: {numbers[0]}."
    if len(ranked) == 2:
        return f"{label} has the higher {title}: {numbers[0]} against {numbers[1]} for {ranked[1][1]}."
    return f"{label} has the highest {title}: {numbers[0]} against {numbers[-1]} to {numbers[1]} for the others."


def _common_settings(configs: Sequence[RunConfig]) -> str:
    """Say in which of data, steps and batch size all runs agree."""
    first = configs[0]
    values: dict[str, set[Any]] = {
        f"on {first.data_text()}": {config.data_key() for config in configs},
        f"for {first.steps:,} steps": {config.steps for config in configs},
        f"with a batch size of {first.batch:,}": {config.batch for config in configs},
    }
    same = [phrase for phrase, found in values.items() if len(found) == 1]
    return f"{'Both' if len(configs) == 2 else 'All'} were trained {' '.join(same)}." if same else ""
