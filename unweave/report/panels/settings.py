"""Mean and standard deviation of every score by setting."""

from typing import Any

from unweave.report.formatting import format_number, short_title
from unweave.report.panel import Panel
from unweave.report.panels.comparison_scores import mark_best
from unweave.report.sweep_summary import decimals, sign, statistics
from unweave.report.views import SweepView


def context(sweep: SweepView) -> dict[str, Any]:
    titles = [short_title(name) for name in sweep.scores]
    return {"scores": titles, "columns": [_column(sweep, name) for name in sweep.scores]}


def _column(sweep: SweepView, score: str) -> dict[tuple[str, str], dict[str, Any]]:
    """Return one cell per family and group; the best mean on each data set is marked."""
    groups = {(family.name, group.label): (family.data, group) for family in sweep.families for group in family.groups}
    found = {key: statistics(group.scores(score)) for key, (_, group) in groups.items()}
    digits = decimals([numbers["mean"] for numbers in found.values()])
    best: dict[tuple[str, str], bool] = {}
    for data in {data for data, _ in groups.values()}:
        means = {key: found[key]["mean"] for key, (other, _) in groups.items() if other == data}
        marked = mark_best(list(means.values()), bool(sign(score)), sign(score), digits)
        best |= {key: is_best for key, (_, is_best) in zip(means, marked, strict=True)}
    cells = {}
    for key, numbers in found.items():
        kept, count = int(groups[key][1].runs["diverged"].isna().sum()), int(numbers["count"])
        texts = {name: format_number(numbers[name], digits) for name in ("mean", "sd")}
        cells[key] = {**texts, "repeated": count > 1, "count": count if 0 < count < kept else 0, "best": best[key]}
    return cells


PANEL = Panel("settings", "Scores by setting", "sweep", context)
