"""The best run of each method: its latents and the command that repeats it."""

from typing import Any

from unweave.config import read_config
from unweave.errors import UserError
from unweave.evaluation.evaluate import evaluate
from unweave.methods import METHODS
from unweave.model import load
from unweave.report.formatting import short_title
from unweave.report.panel import Panel
from unweave.report.sweep_summary import Family, sign
from unweave.report.traversals import latent_rows
from unweave.report.views import SweepView
from unweave.runs import RunFolder


def context(sweep: SweepView) -> dict[str, Any]:
    score = sweep.leading_score or ""
    runs = [_best(sweep, family, score) for family in sweep.families]
    where = " on each data set" if len({family.data for family in sweep.families}) > 1 else ""
    title = f"The best run of each method{where}" if sweep.several else "The best run"
    return {"title": title, "runs": runs, "score": short_title(score)}


def _best(sweep: SweepView, family: Family, score: str) -> dict[str, Any]:
    scored = [(group, sign(score) * values) for group in family.groups if len(values := group.scores(score))]
    if not scored:
        return {"name": family.name, "run": None, "latents": []}
    group, values = max(scored, key=lambda pair: pair[1].max())
    row, of = sweep.frame.loc[values.idxmax()], sum(len(found) for _, found in scored)
    label = ", ".join(word for word in (group.label, f"seed {row['seed']}") if word)
    found = {"name": family.name, "label": label, "run": row["run"], "of": of, "seeds": len(values)}
    return {**found, "value": float(row[score]), "median": float(group.scores(score).median()), **_shown(row["run"])}


def _shown(path: str) -> dict[str, Any]:
    """Return the latents and the command of a run, or a note if its folder is missing or damaged."""
    shown: dict[str, Any] = {"latents": [], "command": None, "note": ""}
    try:
        config = read_config(RunFolder.open(path))
        shown["command"] = config.command() if config.method in METHODS else None
        trained = load(path)
        latents = latent_rows(trained, evaluate(trained, metrics=(), save=False), seed=0, starts=1)
        shown["latents"] = [row for row in latents if row["active"]]
        if not shown["latents"]:
            shown["note"] = "No latent is active." if latents else "This method has no decoder."
    except UserError as error:
        shown["note"] = f"The run cannot be shown: {error}."
    return shown


PANEL = Panel("best_runs", "The best runs", "sweep", context, needs=("ranking",))
