"""The one-file HTML page that compares many runs: which setting is best, and how much of it is the seed."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from unweave.config import read_config
from unweave.errors import UserError
from unweave.evaluation.evaluate import evaluate
from unweave.methods import METHODS
from unweave.metrics import agreement
from unweave.model import load
from unweave.report.charts.agreement import hundredths, order_by_agreement, short_title
from unweave.report.charts.strip_plot import facets
from unweave.report.pages.run import HERE, _latents, _marked
from unweave.report.sweep_summary import (
    Family,
    Group,
    check_frame,
    digits,
    families,
    format_setting,
    leading_score,
    ranking_sentences,
    shown_settings,
    sign,
    statistics,
    summary,
    words_for,
)
from unweave.report.words import DASH, format_number, join_words, percent
from unweave.runs import RunFolder, write_atomic

FEWEST_RUNS, FEWEST_SCORES = 5, 2  # for rank correlations between scores
HALF = 400  # pixels up to which two panels stand side by side


def compare_page(frame: pd.DataFrame, out: str | Path, *, title: str) -> Path:
    """Write one self-contained HTML page about all runs of a frame, one row each; returns where it is."""
    frame, path = check_frame(frame), Path(out)
    if path.is_dir():
        raise UserError(f"out '{out}' is a folder; give the name of a file, such as compare.html")
    page = render(frame, title).encode()
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomic(path, page)
    except OSError as error:
        raise UserError(f"out '{out}' cannot be written: {error.strerror or error}; choose another file") from error
    return path


def render(frame: pd.DataFrame, title: str) -> str:
    """The page's HTML."""
    environment = Environment(
        loader=FileSystemLoader(HERE), autoescape=True, trim_blocks=True, lstrip_blocks=True, undefined=StrictUndefined
    )
    environment.filters["percent"] = percent
    found, score = families(frame), leading_score(frame)
    names = [name for name in frame.attrs["scores"] if np.isfinite(frame[name]).any()]
    return environment.get_template("compare.html").render(
        title=title,
        style=Markup((HERE / "report.css").read_text() + (HERE / "compare.css").read_text()),
        counts=_counts(frame, found),
        facts=_facts(frame),
        sentences=_said(found, score),
        scores=[short_title(name) for name in names],
        rows=_summary_rows(found, names),
        several=len(found) > 1,
        panels=[panel for name in names if (panel := _panel(found, name))["facets"]],
        repeated=any(len(group.runs) > 1 for family in found for group in family.groups),
        diverged=int(frame["diverged"].notna().sum()),
        agreements=_agreements(frame, names),
        best=[_best(frame, family, score) for family in found] if score else [],
        judge=short_title(score) if score else "",
        table=_table(frame, names),
    )


# --- heading -------------------------------------------------------------------------------------------------------


def _counts(frame: pd.DataFrame, found: Sequence[Family]) -> list[tuple[int, str]]:
    format_setting = {
        "run": len(frame),
        "method": frame["method"].nunique(),
        "setting": sum(len(family.groups) for family in found),
        "seed": frame["seed"].nunique(),
    }
    counts = [(count, name if count == 1 else f"{name}s") for name, count in format_setting.items()]
    return [*counts, (int(frame["diverged"].notna().sum()), "diverged")]


def _facts(frame: pd.DataFrame) -> list[str]:
    data, steps = list(dict.fromkeys(frame["data"])), sorted(set(frame["steps"]))
    trained = f"{steps[0]:,} steps" if len(steps) == 1 else f"{steps[0]:,} to {steps[-1]:,} steps"
    return [join_words([str(name) for name in data]), trained]


def _said(found: Sequence[Family], score: str | None) -> list[str]:
    """The verdict, for each data set by itself: scores on different data cannot be set against each other."""
    sets = list(dict.fromkeys(family.data for family in found))
    if len(sets) == 1:
        return ranking_sentences(found, score)
    return [f"On {name}: {' '.join(ranking_sentences([f for f in found if f.data == name], score))}" for name in sets]


# --- summary and panels --------------------------------------------------------------------------------------------


def _summary_rows(found: Sequence[Family], names: Sequence[str]) -> list[dict[str, Any]]:
    """Families with their groups' cells; the best mean of a score on one data set is marked."""
    every = [(family, group) for family in found for group in family.groups]
    columns = [_column(every, name) for name in names]
    cells = iter([[column[place] for column in columns] for place in range(len(every))])
    rows = []
    for colour, family in enumerate(found):
        groups = [
            {
                "label": group.label or ("all runs" if len(found) > 1 else family.name),
                "n": len(group.runs),
                "diverged": int(group.runs["diverged"].notna().sum()),
                "cells": next(cells),
            }
            for group in family.groups
        ]
        rows.append({"name": family.name, "colour": colour % 8, "groups": groups})
    return rows


def _column(every: Sequence[tuple[Family, Group]], name: str) -> list[dict[str, Any]]:
    """One score of every group: its mean, what it scatters, and whether no other on the same data is better."""
    found = [statistics(group.scores(name)) for _, group in every]
    means = [numbers["mean"] for numbers in found]
    fine, won = digits(means), [False] * len(every)
    for data in {family.data for family, _ in every}:
        inside = [i for i, (family, _) in enumerate(every) if family.data == data]
        marked = _marked([means[i] for i in inside], bool(sign(name)), sign(name), fine)
        for i, (_, best) in zip(inside, marked, strict=True):
            won[i] = best
    return [
        {
            "mean": format_number(numbers["mean"], fine),
            "sd": format_number(numbers["sd"], fine) if numbers["count"] > 1 else "",
            "count": int(numbers["count"]) if 0 < numbers["count"] < group.runs["diverged"].isna().sum() else 0,
            "won": won[i],
        }
        for i, ((_, group), numbers) in enumerate(zip(every, found, strict=True))
    ]


def _panel(found: Sequence[Family], name: str) -> dict[str, Any]:
    title, sentence = words_for(name)
    drawn = facets(found, name)
    wide = sum(facet.left + facet.narrowest + 20 for facet in drawn) > HALF
    return {"title": title, "sentence": sentence, "facets": drawn, "wide": wide}


# --- agreement -----------------------------------------------------------------------------------------------------


def _agreements(frame: pd.DataFrame, names: Sequence[str]) -> list[dict[str, Any]]:
    """Rank correlations between scores, for every data set with enough runs."""
    found = []
    for data, part in frame.loc[frame["diverged"].isna()].groupby("data", sort=False):
        varied = [name for name in names if part[name].nunique() > 1 and part[name].notna().sum() >= FEWEST_RUNS]
        if len(varied) >= FEWEST_SCORES:
            several = frame["data"].nunique() > 1
            found.append({"data": data if several else "", **_agreement(part[varied])})
    return found


def _agreement(scores: pd.DataFrame) -> dict[str, Any]:
    upward = {name: (sign(name) or 1) * scores[name] for name in scores}
    table = order_by_agreement(agreement(upward))
    titles = [short_title(name) for name in table.names]
    upper = np.triu(np.where(table.models >= FEWEST_RUNS, table.correlation, np.nan), 1)
    pairs = [(float(upper[i, j]), i, j) for i in range(len(titles)) for j in range(i + 1, len(titles))]
    pairs = sorted((pair for pair in pairs if math.isfinite(pair[0])), reverse=True)
    least, most = int(table.models.min()), int(table.models.max())
    return {
        "titles": titles,
        "runs": f"{most}" if least == most else f"{least} to {most}",
        "chance": hundredths(min(1.0, 1.96 / math.sqrt(max(1, least - 1)))),
        "ends": _ends([(hundredths(value), titles[i], titles[j]) for value, i, j in pairs]),
        "rows": [
            [
                (float(value), hundredths(float(value)) if models >= FEWEST_RUNS else DASH)
                for value, models in zip(*row, strict=True)
            ]
            for row in zip(table.correlation, table.models, strict=True)
        ],
    }


def _ends(pairs: Sequence[tuple[str, str, str]]) -> str:
    if len(pairs) < 2:
        return ""
    (high, *alike), (low, *apart) = pairs[0], pairs[-1]
    return f"{join_words(alike)} agree most ({high}), {join_words(apart)} least ({low})."


# --- the best runs -------------------------------------------------------------------------------------------------


def _best(frame: pd.DataFrame, family: Family, score: str) -> dict[str, Any]:
    """The method's best run by a score: what it is, its latents moved, and the command that repeats it."""
    scored = [(group, group.scores(score)) for group in family.groups]
    scored = [(group, sign(score) * values) for group, values in scored if len(values)]
    if not scored:
        return {"name": family.name, "run": None, "latents": []}
    group, values = max(scored, key=lambda pair: pair[1].max())
    row = frame.loc[values.idxmax()]
    label = ", ".join(word for word in (group.label, f"seed {row['seed']}") if word)
    return {
        "name": family.name,
        "label": label,
        "run": row["run"],
        "value": format_number(float(row[score]), 3),
        "median": format_number(float(group.scores(score).median()), 3),
        "seeds": len(values),
        "of": sum(len(found) for _, found in scored),
        **_shown(row["run"]),
    }


def _shown(run: str) -> dict[str, Any]:
    """What the run's folder still gives: pictures, a command, or why there are none."""
    shown: dict[str, Any] = {"latents": [], "command": None, "note": ""}
    try:
        config = read_config(RunFolder.open(run))
        shown["command"] = config.command() if config.method in METHODS else None
        trained = load(run)
        latents = _latents(trained, evaluate(trained, metrics=(), save=False), seed=0, starts=1)
        shown["latents"] = [latent for latent in latents if latent["alive"]]
        if not shown["latents"]:
            shown["note"] = (
                "No latent is in use." if latents else "This method has no decoder, so nothing can be shown."
            )
    except UserError as error:
        shown["note"] = f"It cannot be shown: {error}."
    return shown


# --- all runs ------------------------------------------------------------------------------------------------------


def _table(frame: pd.DataFrame, names: Sequence[str]) -> dict[str, Any]:
    """Every run with what tells it from the others; each cell as it is read and as it is sorted."""
    settings = [n for n in shown_settings(frame) if n != "steps"]
    plain = [n for n in ("method", "data") if frame[n].nunique() > 1] + settings + ["seed"]
    plain += ["steps"] if frame["steps"].nunique() > 1 else []
    folders = [Path(run).name for run in frame["run"]]
    folders = folders if len(set(folders)) == len(folders) else list(frame["run"])
    rows = []
    for folder, (_, row) in zip(folders, frame.iterrows(), strict=True):
        cells = [_told_cell(row[name]) for name in plain]
        cells += [(format_number(row[name], 3), _sortable(row[name])) for name in names]
        step = row["diverged"]
        rows.append(
            {"folder": folder, "path": row["run"], "cells": cells, "step": "" if step != step else f"{step:,.0f}"}
        )
    heads = [*plain, *(short_title(name) for name in names)]
    return {"heads": heads, "rows": rows}


def _told_cell(value: Any) -> tuple[str, str]:
    text = format_setting(value)
    return text, "" if text == DASH else text


def _sortable(value: float) -> str:
    return repr(float(value)) if math.isfinite(value) else ""


__all__ = ["compare_page", "render", "summary"]
