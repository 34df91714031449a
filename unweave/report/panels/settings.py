"""Mean and standard deviation of every score by setting."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from unweave.report.formatting import format_number, short_title
from unweave.report.panel import Panel
from unweave.report.panels.comparison_scores import mark_best
from unweave.report.sweep_summary import Family, Group, decimals, sign, statistics
from unweave.report.views import SweepView


def context(sweep: SweepView) -> dict[str, Any]:
    return {
        "scores": [short_title(name) for name in sweep.scores],
        "rows": _rows(sweep.families, sweep.scores),
        "several": sweep.several,
        "repeated": sweep.repeated,
        "diverged": sweep.diverged,
    }


def _rows(families: Sequence[Family], scores: Sequence[str]) -> list[dict[str, Any]]:
    """Return the families with the cells of their groups."""
    pairs = [(family, group) for family in families for group in family.groups]
    columns = [_column(pairs, name) for name in scores]
    cells = iter([[column[row] for column in columns] for row in range(len(pairs))])
    return [
        {
            "name": family.name,
            "colour": number % 8,
            "groups": [
                {
                    "label": group.label or ("all runs" if len(families) > 1 else family.name),
                    "n": len(group.runs),
                    "diverged": int(group.runs["diverged"].notna().sum()),
                    "cells": next(cells),
                }
                for group in family.groups
            ],
        }
        for number, family in enumerate(families)
    ]


def _column(pairs: Sequence[tuple[Family, Group]], score: str) -> list[dict[str, Any]]:
    """Return one cell per group; the best mean on each data set is marked."""
    found = [statistics(group.scores(score)) for _, group in pairs]
    means = [numbers["mean"] for numbers in found]
    digits, best = decimals(means), [False] * len(pairs)
    for data in {family.data for family, _ in pairs}:
        inside = [i for i, (family, _) in enumerate(pairs) if family.data == data]
        marked = mark_best([means[i] for i in inside], bool(sign(score)), sign(score), digits)
        for i, (_, is_best) in zip(inside, marked, strict=True):
            best[i] = is_best
    return [
        {
            "mean": format_number(numbers["mean"], digits),
            "sd": format_number(numbers["sd"], digits) if numbers["count"] > 1 else "",
            "count": int(numbers["count"]) if 0 < numbers["count"] < group.runs["diverged"].isna().sum() else 0,
            "best": best[i],
        }
        for i, ((_, group), numbers) in enumerate(zip(pairs, found, strict=True))
    ]


PANEL = Panel("settings", "Scores by setting", "sweep", context)
