"""The words and numbers of a report: what was trained, what it found, and the command that repeats it."""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

import numpy as np

from unweave.config import RunConfig, format_value
from unweave.contract import static_arguments
from unweave.data import Dataset, explain
from unweave.evaluation.evaluate import Evaluation
from unweave.methods import METHODS
from unweave.metrics import METRICS

FOUND, PARTIAL_THRESHOLD = 0.4, 0.15  # share of a factor's entropy one latent must know for these words
NARROW = "\N{NARROW NO-BREAK SPACE}"
MOST_NAMED = 6  # latents that a sentence names
DASH = "\N{EN DASH}"
MINUS = "\N{MINUS SIGN}"


def format_number(value: float, digits: int = 2) -> str:
    """A number for reading: fixed digits, a true minus, a dash for what is not a number."""
    if not math.isfinite(value):
        return DASH
    text = f"{value:,.{digits}f}"
    return text.replace("-", MINUS) if float(text.replace(",", "")) else f"{0:.{digits}f}"


def short(value: float) -> str:
    """About three significant digits, for axes and tables."""
    if not math.isfinite(value):
        return DASH
    if value and (abs(value) < 0.001 or abs(value) >= 1e6):
        return f"{value:.2g}".replace("-", MINUS)
    digits = max(0, 2 - math.floor(math.log10(abs(value)))) if value else 0
    text = format_number(value, digits)
    return text.rstrip("0").rstrip(".") if "." in text else text


def percent(share: float) -> str:
    return f"{100 * share:.0f}{NARROW}%" if math.isfinite(share) else DASH


def join_words(words: Sequence[str], last: str = "and") -> str:
    """one, two and three"""
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} {last} {words[-1]}" if words else ""


def pretty(name: str) -> str:
    return name.replace("_", " ")


# --- names ---------------------------------------------------------------------------------------------------------


def method_title(name: str) -> str:
    """The method as people write it, which is how its file's first line begins."""
    return _first_line(name)[0] or name


def method_about(name: str) -> str:
    return _first_line(name)[1]


def _first_line(name: str) -> tuple[str, str]:
    cls = METHODS.get(name)
    text = (getattr(sys.modules.get(cls.__module__), "__doc__", None) or "") if cls else ""
    title, _, about = (text.splitlines() or [""])[0].partition(": ")
    return title.strip(), about.strip().rstrip(".")


def run_labels(configs: Sequence[RunConfig], folders: Sequence[str]) -> list[str]:
    """The shortest name by which each run can be told from the others."""
    rows = [config.shown_settings() for config in configs]
    labels = [method_title(config.method) for config in configs]
    names = [n for n in dict.fromkeys(n for row in rows for n in row) if n not in ("method", "learning rate")]
    for name in [*names, "learning rate"]:
        for label in [label for label in labels if labels.count(label) > 1]:
            same = [i for i, other in enumerate(labels) if other == label]
            if len({rows[i].get(name) for i in same}) > 1:
                for i in same:
                    labels[i] = f"{label}, {name} {rows[i].get(name, DASH)}"
    unique = len(set(labels)) == len(labels)
    return labels if unique else [f"{label} ({folder})" for label, folder in zip(labels, folders, strict=True)]


# --- settings ------------------------------------------------------------------------------------------------------


# --- sentences -----------------------------------------------------------------------------------------------------


def when(created: str) -> str:
    """2026-03-01T14:05:00Z as 1 March 2026, 14:05 UTC; anything else as it is."""
    try:
        moment = datetime.strptime(created, "%Y-%m-%dT%H:%M:%SZ")
    except ValueError:
        return created
    return f"{moment.day} {moment:%B %Y, %H:%M} UTC"


def trained_in(took: Mapping[str, Any]) -> str:
    """{"seconds": 83, "models": 10, "device": "cpu"} as 10 models in 1 min 23 s on CPU; {} as nothing."""
    if not {"seconds", "models", "device"} <= took.keys():
        return ""
    minutes, seconds = divmod(max(1, round(took["seconds"])), 60)
    hours, minutes = divmod(minutes, 60)
    parts = [(hours, "h"), (minutes, "min"), (seconds, "s")]
    first = next(place for place, (count, _) in enumerate(parts) if count)
    span = " ".join(f"{count}{NARROW}{unit}" for count, unit in parts[first : first + 2] if count)
    together = f"{took['models']} models in " if took["models"] > 1 else ""
    return f"{together}{span} on {'CPU' if took['device'] == 'cpu' else took['device']}"


def run_summary(config: RunConfig, data: Dataset, needs: Sequence[str], done: int) -> str:
    """What was trained, as one would tell it."""
    channels, height, width = data.shape
    kind = config.supervision.partition("(")[0]
    unit = {"groups": "groups", "triplets": "triplets", "clips": "clips", "pairs": "pairs", "match": "pairs"}.get(
        kind, "images"
    )
    given = "" if kind in ("none", "labels") else f" {explain(config.supervision, data)}"
    colour = "grey" if channels == 1 else "colour"
    factors = join_words([pretty(name) for name in data.factor_names])
    told = "the model was given labels of some" if "labels" in needs else "the model was shown no labels"
    told = "the model was told which group each is in" if "group_id" in needs else told
    stopped = "" if done >= config.steps else f" It is unfinished: it stands at step {done:,}."
    return (
        f"{method_title(config.method)} on {config.data} ({height} × {width}, {colour}), "
        f"{config.steps:,} steps of {config.batch:,} {unit}, seed {config.seed}.{stopped} "
        f"The data are {data.size:,} images {f'that differ in {factors}' if factors else 'of unknown factors'}; {told}."
        f"{given}"
    )


def findings(result: Evaluation, shares_ZK: np.ndarray) -> list[str]:
    """Which factors ended up in which latent, in plain sentences."""
    best_K, known_K = shares_ZK.argmax(0), shares_ZK.max(0)
    found, partly, lost = [], [], []
    for k in np.argsort(-known_K, kind="stable"):
        name = pretty(result.factor_names[k])
        placed = f"{name} in z{best_K[k]} ({percent(float(known_K[k]))})"
        if known_K[k] >= FOUND:
            found.append(placed)
        elif known_K[k] >= PARTIAL_THRESHOLD:
            partly.append(placed)
        else:
            lost.append(name)
    groups = {"It found": found, "It found in part": partly, "No single latent tells": lost}
    said = [
        f"{words} {join_words(group, 'or' if group is lost else 'and')}." for words, group in groups.items() if group
    ]
    return said + _split(result, shares_ZK) + _mixed(result, best_K, known_K)


def _split(result: Evaluation, shares_ZK: np.ndarray) -> list[str]:
    """Factors that a second latent knows at least half as well as the first."""
    said = []
    for k, name in enumerate(result.factor_names):
        holders = np.flatnonzero(shares_ZK[:, k] >= max(PARTIAL_THRESHOLD, shares_ZK[:, k].max() / 2))
        if len(holders) > 1:
            named = [f"z{z}" for z in holders]
            if len(holders) > MOST_NAMED:
                best = holders[np.argsort(-shares_ZK[holders, k], kind="stable")][: MOST_NAMED - 1]
                named = [*(f"z{z}" for z in best), f"{len(holders) - len(best)} others"]
            said.append(f"{pretty(name)} is split between {join_words(named)}.")
    return said


def _mixed(result: Evaluation, best_K: np.ndarray, known_K: np.ndarray) -> list[str]:
    """Latents that are the best place to look for several factors at once."""
    said = []
    for z in sorted(set(best_K.tolist())):
        held = np.flatnonzero((best_K == z) & (known_K >= PARTIAL_THRESHOLD))
        if len(held) > 1:
            said.append(f"z{z} mixes {join_words([pretty(result.factor_names[k]) for k in held])}.")
    return said


def comparison(labels: Sequence[str], results: Sequence[Evaluation], same_data: bool) -> list[str]:
    """What differs between runs, metric by metric, and how far to trust it."""
    if not same_data:
        return ["These runs were trained on different data, so their scores cannot be set against each other."]
    said, leader = [], ""
    for name in results[0].scores:
        values = [result.scores.get(name, math.nan) for result in results]
        known = sorted((i for i, v in enumerate(values) if math.isfinite(v)), key=lambda i: -values[i])
        if len(known) > 1:
            said.append(_verdict(METRICS[name].title, labels, values, known, leader))
            leader = labels[known[0]]
    return [*said, "Each run is one seed; seeds alone move these scores, so a small gap may be chance."]


def in_common(configs: Sequence[RunConfig]) -> str:
    """Where the runs were trained alike, as one sentence; nothing if nowhere."""
    rows = [{"data": c.data_text(), "steps": f"{c.steps:,}", "batch": f"{c.batch:,}"} for c in configs]
    words = {"data": "on {}", "steps": "for {} steps", "batch": "in batches of {}"}
    same = [text.format(rows[0][n]) for n, text in words.items() if len({row[n] for row in rows}) == 1]
    return f"{'Both' if len(rows) == 2 else 'All'} were trained {' '.join(same)}." if same else ""


def _verdict(title: str, labels: Sequence[str], values: Sequence[float], known: Sequence[int], leader: str) -> str:
    first, second = known[0], known[1]
    short_title = title[title.find("(") + 1 : -1] if title.endswith(")") else title
    level = [labels[i] for i in known if values[first] - values[i] < 0.005]
    if len(level) > 1:
        return f"By {short_title}, {join_words(level)} are level at {format_number(values[first])}."
    against = f"{format_number(values[second])} for {labels[second]}"
    if len(known) > 2:
        against = f"{format_number(values[known[-1]])} to {format_number(values[second])} for the others"
    if labels[first] == leader:
        return f"The {short_title} agrees: {format_number(values[first])} against {against}."
    if leader:
        return f"The {short_title} puts {labels[first]} first: {format_number(values[first])} against {against}."
    best = "better" if len(known) == 2 else "best"
    return (
        f"{labels[first]} separates the factors {best}: {short_title} {format_number(values[first])} against {against}."
    )


def differences(configs: Sequence[RunConfig]) -> list[tuple[str, list[str]]]:
    """The settings in which runs differ, each with its value per run."""
    rows = [config.shown_settings() for config in configs]
    names = dict.fromkeys(name for row in rows for name in row)
    table = {name: [row.get(name, DASH) for row in rows] for name in names}
    table["method"] = [method_title(name) for name in table["method"]]
    return [(n, values) for n, values in table.items() if len(set(values)) > 1 and not _idle(n, configs, values)]


def _idle(name: str, configs: Sequence[RunConfig], values: Sequence[str]) -> bool:
    """A switch that only some methods have, and that all of those leave as it is."""
    found = []
    for config, value in zip(configs, values, strict=True):
        cls = METHODS.get(config.method)
        default = static_arguments(cls)[name].default if cls and name in static_arguments(cls) else None
        found.append(value == DASH or format_value(default) == value)
    return DASH in values and all(found)
