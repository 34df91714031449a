"""Statistics of a sweep: runs that differ only in their seed form a group.

A frame has one row per run; its `attrs` name the varied settings and the scores. The tables of `score_runs` also have
the column `setting`: runs with equal entries are seeds of one setting. Runs that diverged or could not be scored are
counted but left out of all statistics.
"""

import math
from collections.abc import Sequence
from contextlib import suppress
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from unweave.config import format_value
from unweave.errors import UserError
from unweave.evaluation.run_table import data_labels
from unweave.metrics import METRICS
from unweave.report.formatting import DASH, format_number, join_words, method_title, percent, short_title

COLUMNS = ("run", "method", "data", "seed", "steps", "diverged")
NO_BREAK = "\N{NO-BREAK SPACE}"
RATIO = 1.25  # a standard deviation is called larger if it is this many times the other
MIN_SETTINGS, MIN_SEEDS = 3, 10  # settings, and runs beyond one per setting, from which deviations are compared


class Group(NamedTuple):
    """Runs of one method with one setting."""

    values: dict[str, str]  # the settings that distinguish it from the method's other groups, as text
    runs: pd.DataFrame

    @property
    def label(self) -> str:
        return ", ".join(f"{name}{NO_BREAK}{value}" for name, value in self.values.items())

    def scores(self, name: str) -> pd.Series:
        """Return the finite scores of the runs that did not diverge."""
        kept = self.runs.loc[self.runs["diverged"].isna(), name].astype(float)
        return kept[np.isfinite(kept)]

    @property
    def diverged(self) -> int:
        return int(self.runs["diverged"].notna().sum())


class Family(NamedTuple):
    """All groups of one method on one data set, ordered by setting."""

    name: str
    method: str
    data: str
    groups: list[Group]


def check_frame(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the frame with a new index and with different names for different data; raise if it lacks something."""
    attributes = {name: list(frame.attrs.get(name, ())) for name in ("settings", "scores")}
    columns = [*COLUMNS, *attributes["settings"], *attributes["scores"]]
    known = [name for name in attributes["scores"] if name in frame]
    text = [name for name in known if not pd.api.types.is_numeric_dtype(frame[name])]
    faults: list[tuple[str, Any, str]] = [
        *((f"has no attrs[{n!r}]", n, "attrs with lists of columns") for n in attributes if n not in frame.attrs),
        *((f"has no column {n!r}", n, f"the columns {', '.join(columns)}") for n in columns if n not in frame),
        *([("has 0 rows", 0, "at least one row")] if not len(frame) else []),
        *((f"has text in column {n!r}", n, "numbers or NaN") for n in text),
    ]
    if faults:
        problem, value, accepted = faults[0]
        raise UserError(f"frame {problem}; give {accepted}", argument="frame", value=value, accepted=accepted)
    checked = frame.reset_index(drop=True)
    if {"data_call", "data_digest"} <= set(checked):
        checked["data"] = data_labels(list(checked["data_call"]), list(checked["data_digest"].fillna("")))
    checked.attrs = {**frame.attrs, **attributes}
    return checked


def format_setting(value: Any) -> str:
    """Return a setting as text, or a dash if the method has no such setting."""
    if not isinstance(value, list | tuple) and pd.isna(value):
        return DASH
    return format_value(value.item() if isinstance(value, np.generic) else value)


def shown_settings(frame: pd.DataFrame) -> list[str]:
    """Return the settings that vary, including the number of steps."""
    return [*frame.attrs["settings"], *(["steps"] if frame["steps"].nunique() > 1 else [])]


def families(frame: pd.DataFrame) -> list[Family]:
    """Return the runs by method and data set, and within these by setting."""
    several = frame["data"].nunique() > 1
    found = []
    for (method, data), part in frame.groupby(["method", "data"], sort=False):
        name = method_title(method) + (f" on {data}" if several else "")
        found.append(Family(name, method, data, _groups(part, shown_settings(frame))))
    return found


def _groups(part: pd.DataFrame, settings: Sequence[str]) -> list[Group]:
    # Settings without a column of their own, such as the betas of an optimizer, are compared too.
    columns = [*settings, *(["setting"] if "setting" in part else [])]
    texts = pd.DataFrame({name: [format_setting(v) for v in part[name]] for name in columns}, index=part.index)
    names = _distinguishing(texts)
    ranks = {name: _ranks(texts[name]) for name in names}
    keys = [tuple(ranks[name][texts.at[row, name]] for name in names) for row in part.index]
    groups = []
    for key in sorted(set(keys)):
        rows = part.loc[[k == key for k in keys]]
        groups.append(Group({name: texts.at[rows.index[0], name] for name in names}, rows))
    return groups


def _distinguishing(texts: pd.DataFrame) -> list[str]:
    """Return settings, as few as possible, that distinguish all groups."""
    kept: list[str] = []
    distinct = 1
    for name in texts.columns:
        count = len(texts[[*kept, name]].drop_duplicates())
        if count > distinct:
            kept, distinct = [*kept, name], count
    return kept


def _ranks(texts: pd.Series) -> dict[str, int]:
    """Return the position of each value: numbers by size, others in order of appearance."""
    values = list(dict.fromkeys(texts))
    with suppress(ValueError):
        values.sort(key=lambda value: math.inf if value == DASH else float(value))
    return {value: rank for rank, value in enumerate(values)}


def summary(frame: pd.DataFrame) -> pd.DataFrame:
    """Return one row per method, data set and setting: runs (n), diverged runs, and statistics of every score.

    Columns are "mig.count", "mig.mean", "mig.sd", "mig.median", "mig.min", "mig.max" and so on. The standard deviation
    is the unbiased one, NaN for fewer than two runs.
    """
    frame = check_frame(frame)
    settings, scores, rows = shown_settings(frame), frame.attrs["scores"], []
    for family in families(frame):
        for group in family.groups:
            row = {"method": family.method, "data": family.data, **group.runs.iloc[0][settings].to_dict()}
            row |= {"n": len(group.runs), "diverged": group.diverged}
            for name in scores:
                row |= {f"{name}.{what}": value for what, value in statistics(group.scores(name)).items()}
            rows.append(row)
    table = pd.DataFrame(rows)
    table.attrs = {"settings": settings, "scores": list(scores)}
    return table


def statistics(values: pd.Series) -> dict[str, float]:
    ends = {"median": values.median(), "min": values.min(), "max": values.max()}
    return {"count": len(values), "mean": values.mean(), "sd": values.std(), **ends}


def sign(score: str) -> int:
    """Return 1 if higher is better (also for unknown scores), -1 if lower is better, 0 if neither."""
    metric = METRICS.get(score.partition(".")[0])
    return {"higher": 1, "lower": -1, "neither": 0}[metric.better] if metric else 1


def best_groups(methods: Sequence[Family], score: str) -> list[Group]:
    """Return for each data set the setting with the best median, if there are several settings."""
    best = []
    for data in dict.fromkeys(family.data for family in methods):
        groups = [g for f in methods if f.data == data for g in f.groups if len(g.scores(score))]
        if sign(score) and len(groups) > 1:
            best.append(max(groups, key=lambda group: sign(score) * group.scores(score).median()))
    return best


def decimals(values: Sequence[float]) -> int:
    """Return the number of decimals to show: one more if all values are small."""
    return 3 if max((abs(value) for value in values if math.isfinite(value)), default=1.0) < 0.1 else 2


class Ranked(NamedTuple):
    label: str
    values: np.ndarray
    median: float


def ranking_sentences(methods: Sequence[Family], score: str | None) -> list[str]:
    """Say which setting is best, by how much, and how large the variation between seeds is."""
    if score is None:
        return ["No run has a score, so settings cannot be ranked."]
    labelled = [
        (f"{family.name} ({g.label})" if g.label and len(methods) > 1 else g.label or family.name, g.scores(score))
        for family in methods
        for g in family.groups
    ]
    groups = [Ranked(label, scores.to_numpy(), float(scores.median())) for label, scores in labelled if len(scores)]
    groups.sort(key=lambda g: -sign(score) * g.median)
    title = short_title(score)
    if not groups:
        return [f"No run has a value of {title}."]
    if len(groups) == 1:
        return [_single(groups[0], title)]
    if all(len(g.values) == 1 for g in groups):
        once = "Every setting has one run, so these numbers cannot distinguish a better setting from a luckier seed."
        return [_best(groups, title, ""), once]
    first = " ".join([_best(groups, title, "median "), *_pairs(groups, sign(score))])
    return [first, _variation(groups, title)]


def _single(group: Ranked, title: str) -> str:
    values = (group.values.min(), group.median, group.values.max())
    low, median, high = (format_number(float(value), decimals([group.median])) for value in values)
    if len(group.values) == 1:
        return f"One run has a score: {title} {low}."
    return f"The {len(group.values)} runs have a median {title} of {median}, from {low} to {high}."


def _best(groups: Sequence[Ranked], title: str, statistic: str) -> str:
    digits = decimals([g.median for g in groups])
    medians = [format_number(g.median, digits) for g in groups]
    equal = [g.label for g, median in zip(groups, medians, strict=True) if median == medians[0]]
    if len(equal) > 1:
        named = join_words(equal) if len(equal) <= 4 else f"{len(equal)} settings"
        return f"Best by {statistic}{title}: {named}, equal at {medians[0]}."
    return f"Best by {statistic}{title}: {groups[0].label} with {medians[0]}, then {groups[1].label} with {medians[1]}."


def _pairs(groups: Sequence[Ranked], better: int) -> list[str]:
    """Say how often a run of the best setting is better than a run of the next; ties count half."""
    first, second = groups[0].values, groups[1].values
    if min(len(first), len(second)) < 2:
        return []
    ahead = np.sign(better * (first[:, None] - second[None, :]))
    share = float((ahead + 1).mean() / 2)
    return [f"A run of {groups[0].label} is better than a run of {groups[1].label} in {percent(share)} of pairs."]


def _variation(groups: Sequence[Ranked], title: str) -> str:
    """Compare the standard deviations between seeds and between settings, and the latter with its value by chance."""
    counts = np.array([len(g.values) for g in groups])
    squares = sum(float(((g.values - g.values.mean()) ** 2).sum()) for g in groups)
    seeds = math.sqrt(squares / (counts.sum() - len(groups)))
    settings = float(np.std([g.values.mean() for g in groups], ddof=1))
    chance = seeds * math.sqrt(float((1 / counts).mean()))
    numbers = (
        f"The standard deviation of {title} is {_two_digits(seeds)} between seeds of one setting and "
        f"{_two_digits(settings)} between the means of the {len(groups)} settings (seeds alone would give about "
        f"{_two_digits(chance)})"
    )
    if len(groups) < MIN_SETTINGS or counts.sum() - len(groups) < MIN_SEEDS:
        return f"{numbers}; there are too few runs to tell which matters more."
    excess = math.sqrt(max(0.0, settings**2 - chance**2))
    larger, smaller = ("seed", "setting") if seeds > excess else ("setting", "seed")
    if max(seeds, excess) > RATIO * min(seeds, excess):
        return f"{numbers}: in these runs the {larger} matters more than the {smaller}."
    return f"{numbers}: in these runs seed and setting matter about equally."


def _two_digits(value: float) -> str:
    return f"{value:#.2g}".rstrip(".") if value < 100 else format_number(value, 0)
