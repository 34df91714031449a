"""A sweep in numbers and sentences: runs that differ by nothing but their seed are a group.

A frame has one row per run; `attrs` names its varied settings and its scores. Runs that diverged are counted, and
left out of every mean: their last finite state is not what the setting leads to.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from unweave.errors import UserError
from unweave.metrics import METRICS, describe
from unweave.report.charts.agreement import short_title
from unweave.report.words import DASH, format_number, format_value, join_words, method_title, percent

COLUMNS = ("run", "method", "data", "seed", "steps", "diverged")
NO_BREAK = "\N{NO-BREAK SPACE}"
LEVEL = 1.25  # how many times larger one scatter must be than the other to be called more
ENOUGH_SETTINGS, ENOUGH_SEEDS = 3, 10  # settings, and runs beyond one a setting, from which scatters are set against


class Group(NamedTuple):
    """Runs of one method with one setting."""

    values: dict[str, str]  # the settings that tell it from the method's other groups, for reading
    runs: pd.DataFrame

    @property
    def label(self) -> str:
        return ", ".join(f"{name}{NO_BREAK}{value}" for name, value in self.values.items())

    def scores(self, name: str) -> pd.Series:
        """What the runs that did not diverge score, where they have that score."""
        kept = self.runs.loc[self.runs["diverged"].isna(), name].astype(float)
        return kept[np.isfinite(kept)]


class Family(NamedTuple):
    """All groups of one method on one data set, settings in their order."""

    name: str
    method: str
    data: str
    groups: list[Group]

    def full_label(self, group: Group, alone: bool) -> str:
        """The group among all others: without the method's name if there is only this method."""
        if alone:
            return group.label or self.name
        return f"{self.name} ({group.label})" if group.label else self.name


def check_frame(frame: pd.DataFrame) -> pd.DataFrame:
    """The frame with fresh row numbers, or one line about what it lacks."""
    wanted = [*COLUMNS, *frame.attrs.get("settings", ()), *frame.attrs.get("scores", ())]
    if missing := [name for name in wanted if name not in frame.columns]:
        raise UserError(f"frame: has no column {missing[0]!r}; accepted is one row per run with {', '.join(COLUMNS)}")
    if "scores" not in frame.attrs or "settings" not in frame.attrs:
        raise UserError("frame: its attrs lack 'settings' or 'scores'; both must list columns, either may be empty")
    if not len(frame):
        raise UserError("frame: has no rows; give at least one run")
    for name in frame.attrs["scores"]:
        if not pd.api.types.is_numeric_dtype(frame[name]):
            raise UserError(f"frame: column {name!r} holds what is no number; accepted are numbers and NaN")
    checked = frame.reset_index(drop=True)
    checked.attrs = {name: list(frame.attrs[name]) for name in ("settings", "scores")}
    return checked


def format_setting(value: Any) -> str:
    """A setting for reading; a dash where a method has no such setting."""
    if not isinstance(value, list | tuple) and pd.isna(value):
        return DASH
    return format_value(value.item() if isinstance(value, np.generic) else value)


def shown_settings(frame: pd.DataFrame) -> list[str]:
    """The settings that vary; the number of steps is one where it differs."""
    return [*frame.attrs["settings"], *(["steps"] if frame["steps"].nunique() > 1 else [])]


def families(frame: pd.DataFrame) -> list[Family]:
    """The runs by method and data set, and inside by setting."""
    several = frame["data"].nunique() > 1
    found = []
    for (method, data), part in frame.groupby(["method", "data"], sort=False):
        name = method_title(method) + (f" on {data}" if several else "")
        found.append(Family(name, method, data, _groups(part, shown_settings(frame))))
    return found


def _groups(part: pd.DataFrame, settings: Sequence[str]) -> list[Group]:
    texts = pd.DataFrame({name: [format_setting(v) for v in part[name]] for name in settings}, index=part.index)
    telling = _telling(texts)
    places = {name: _order(texts[name]) for name in telling}
    keys = [tuple(places[name][texts.at[row, name]] for name in telling) for row in part.index]
    found = []
    for key in sorted(set(keys)):
        rows = part.loc[[k == key for k in keys]]
        found.append(Group({name: texts.at[rows.index[0], name] for name in telling}, rows))
    return found


def _telling(texts: pd.DataFrame) -> list[str]:
    """The fewest settings, first ones first, that tell all groups apart."""
    kept: list[str] = []
    apart = 1
    for name in texts.columns:
        count = len(texts[[*kept, name]].drop_duplicates())
        if count > apart:
            kept, apart = [*kept, name], count
    return kept


def _order(texts: pd.Series) -> dict[str, int]:
    """Numbers by size, anything else as it comes."""
    values = list(dict.fromkeys(texts))
    try:
        values.sort(key=lambda value: math.inf if value == DASH else float(value))
    except ValueError:
        pass
    return {value: place for place, value in enumerate(values)}


def summary(frame: pd.DataFrame) -> pd.DataFrame:
    """One row per method, data set and setting: runs (n), diverged ones, and statistics of every score over the rest.

    Columns are "mig.count", "mig.mean", "mig.sd", "mig.median", "mig.min", "mig.max" and so on; the standard
    deviation is the unbiased one, NaN for fewer than two runs.
    """
    frame = check_frame(frame)
    settings, scores, rows = shown_settings(frame), frame.attrs["scores"], []
    for family in families(frame):
        for group in family.groups:
            row = {"method": family.method, "data": family.data, **group.runs.iloc[0][settings].to_dict()}
            row |= {"n": len(group.runs), "diverged": int(group.runs["diverged"].notna().sum())}
            for name in scores:
                row |= {f"{name}.{what}": value for what, value in statistics(group.scores(name)).items()}
            rows.append(row)
    found = pd.DataFrame(rows)
    found.attrs = {"settings": settings, "scores": list(scores)}
    return found


def statistics(values: pd.Series) -> dict[str, float]:
    ends = {"median": values.median(), "min": values.min(), "max": values.max()}
    return {"count": len(values), "mean": values.mean(), "sd": values.std(), **ends}


# --- what a score is -----------------------------------------------------------------------------------------------


def sign(score: str) -> int:
    """1 where higher is better (scores from elsewhere included), -1 where lower is, 0 where neither."""
    metric = METRICS.get(score.partition(".")[0])
    return {"higher": 1, "lower": -1, "neither": 0}[metric.better] if metric else 1


def words_for(score: str) -> tuple[str, str]:
    """Title and sentence; a score from elsewhere has no sentence."""
    try:
        metric = describe(score)
    except KeyError:
        return short_title(score), ""
    return metric.title, metric.description


def leading_score(frame: pd.DataFrame) -> str | None:
    """What the best setting is judged by: MIG, or else the first score that has values and a better end."""
    kept = frame.loc[frame["diverged"].isna()]
    names = sorted(frame.attrs["scores"], key=lambda name: name != "mig")
    return next((name for name in names if sign(name) and np.isfinite(kept[name]).any()), None)


def digits(values: Sequence[float]) -> int:
    """Decimals that tell the values apart: one more where all are small."""
    return 3 if max((abs(value) for value in values if math.isfinite(value)), default=1.0) < 0.1 else 2


# --- sentences -----------------------------------------------------------------------------------------------------


class Ranked(NamedTuple):
    label: str
    values: np.ndarray

    @property
    def median(self) -> float:
        return float(np.median(self.values))


def ranking_sentences(found: Sequence[Family], score: str | None) -> list[str]:
    """Which setting is best, how far ahead of the next, and how much seeds scatter beside settings."""
    if score is None:
        return ["No run has a score, so nothing can be said of what is best."]
    alone = len(found) == 1
    groups = [Ranked(f.full_label(g, alone), g.scores(score).to_numpy()) for f in found for g in f.groups]
    groups = sorted((g for g in groups if len(g.values)), key=lambda g: -sign(score) * g.median)
    title = short_title(score)
    if not groups:
        return [f"No run has a value of {title}."]
    if len(groups) == 1:
        return [_only(groups[0], title)]
    if all(len(g.values) == 1 for g in groups):
        lucky = "Every setting was run once, so these numbers cannot tell a better setting from a luckier seed."
        return [_best(groups, title, ""), lucky]
    first = " ".join([_best(groups, title, "median "), *_pairs(groups, sign(score))])
    return [first, *_scatter(groups, title)]


def _only(group: Ranked, title: str) -> str:
    fine = digits([group.median])
    low, high = (format_number(float(end), fine) for end in (group.values.min(), group.values.max()))
    if len(group.values) == 1:
        return f"One run has a score: {title} {low}."
    median = format_number(group.median, fine)
    return f"The {len(group.values)} runs have a median {title} of {median}, from {low} to {high}."


def _best(groups: Sequence[Ranked], title: str, what: str) -> str:
    fine = digits([g.median for g in groups])
    medians = [format_number(g.median, fine) for g in groups]
    level = [g.label for g, median in zip(groups, medians, strict=True) if median == medians[0]]
    if len(level) > 1:
        named = join_words(level) if len(level) <= 4 else f"{len(level)} settings"
        return f"Best by {what}{title}: {named}, level at {medians[0]}."
    return f"Best by {what}{title}: {groups[0].label} with {medians[0]}, then {groups[1].label} with {medians[1]}."


def _pairs(groups: Sequence[Ranked], better: int) -> list[str]:
    """How often a run of the best setting beats a run of the next; ties count half."""
    first, second = groups[0].values, groups[1].values
    if min(len(first), len(second)) < 2:
        return []
    ahead = np.sign(better * (first[:, None] - second[None, :]))
    share = float((ahead + 1).mean() / 2)
    return [f"A run of {groups[0].label} beats a run of {groups[1].label} in {percent(share)} of all such pairs."]


def _scatter(groups: Sequence[Ranked], title: str) -> list[str]:
    """Standard deviation between seeds against that between settings, and what seeds alone would make of the latter."""
    counts = np.array([len(g.values) for g in groups])
    squares = sum(float(((g.values - g.values.mean()) ** 2).sum()) for g in groups)
    seeds = math.sqrt(squares / (counts.sum() - len(groups)))
    settings = float(np.std([g.values.mean() for g in groups], ddof=1))
    chance = seeds * math.sqrt(float((1 / counts).mean()))
    said = (
        f"Between seeds of one setting {title} scatters by {_two(seeds)} (standard deviation), between the means "
        f"of the {len(groups)} settings by {_two(settings)}, where seeds alone would make about {_two(chance)}"
    )
    if len(groups) < ENOUGH_SETTINGS or counts.sum() - len(groups) < ENOUGH_SEEDS:
        return [f"{said}; so few runs do not tell which matters more."]
    return [f"{said}: {_which_matters(seeds, math.sqrt(max(0.0, settings**2 - chance**2)))}."]


def _two(value: float) -> str:
    """Two significant digits: a scatter is known no better."""
    return f"{value:#.2g}".rstrip(".") if value < 100 else format_number(value, 0)


def _which_matters(seeds: float, settings: float) -> str:
    if seeds > LEVEL * settings:
        return "in these runs the seed matters more than the setting"
    if settings > LEVEL * seeds:
        return "in these runs the setting matters more than the seed"
    return "in these runs seed and setting matter about alike"
