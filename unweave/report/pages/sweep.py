"""The page of a sweep: one HTML file that compares settings and seeds."""

from collections.abc import Mapping
from pathlib import Path

import pandas as pd

from unweave.data.storage.digest import SAMPLED_NOTE
from unweave.report.formatting import join_words
from unweave.report.panels import render_panels
from unweave.report.render import check_file, write_page
from unweave.report.sweep_summary import check_frame, ranking_sentences
from unweave.report.views import SweepView


def compare_page(
    frame: pd.DataFrame, out: str | Path, *, title: str, beside: Mapping[Path, bytes] | None = None
) -> Path:
    """Write a self-contained HTML page about the runs of a frame, one row each, and files beside it; return its path.

    All files are written, or none.
    """
    view, path = SweepView(check_frame(frame)), check_file(out)
    texts = {"title": title, "sentences": _sentences(view), "facts": _facts(view.frame)}
    return write_page("sweep", path, beside, **texts, view=view, panels=render_panels("sweep", view))


def _facts(frame: pd.DataFrame) -> list[str]:
    data, steps = list(dict.fromkeys(frame["data"])), sorted(set(frame["steps"]))
    trained = f"{steps[0]:,} steps" if len(steps) == 1 else f"{steps[0]:,} to {steps[-1]:,} steps"
    sampled = [SAMPLED_NOTE] if frame.attrs.get("sampled") else []
    return [join_words([str(name) for name in data]), trained, *sampled]


def _sentences(view: SweepView) -> list[str]:
    """Return the ranking for each data set, since scores on different data cannot be compared."""
    names = list(dict.fromkeys(family.data for family in view.families))
    rankings = [ranking_sentences([f for f in view.families if f.data == name], view.leading_score) for name in names]
    if len(names) == 1:
        return rankings[0]
    return [f"On {name}: {' '.join(ranking)}" for name, ranking in zip(names, rankings, strict=True)]
