"""The data of each kind of page: what its panels show, and the conditions that a panel can declare as needs."""

import json
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from unweave.evaluation.evaluate import Evaluation, evaluate
from unweave.model import TrainedModel, checkpoint_step, load
from unweave.report.charts.curves import Curve, read_curves
from unweave.report.charts.strips import StripRow
from unweave.report.class_accuracy import ClassAccuracy, class_accuracies
from unweave.report.information import coordinate_names
from unweave.report.sweep_summary import Family, families, sign
from unweave.report.traversals import latent_rows


@dataclass(frozen=True)
class RunView:
    """One run on a page."""

    trained: TrainedModel
    result: Evaluation
    curves: Mapping[str, Curve]
    step: int  # number of training steps done
    seed: int = 0  # of the images that are drawn
    number: int = 0  # position on the page; decides the colour
    label: str = ""
    starts: int = 3  # number of start images of a traversal
    several: bool = False  # other runs are on the same page

    @property
    def side(self) -> int:
        """Number of images along one side of a grid."""
        return 6 if self.starts > 1 else 4

    @property
    def active(self) -> tuple[int, int]:
        """Number of active latents and of all latents, without probabilities of classes."""
        counted = [not is_class for _, is_class in coordinate_names(self.trained)]
        return int(self.result.active[counted].sum()), sum(counted)

    @cached_property
    def latents(self) -> list[dict[str, Any]]:
        return latent_rows(self.trained, self.result, self.seed, self.starts)

    @cached_property
    def accuracies(self) -> list[ClassAccuracy]:
        return class_accuracies(self.trained, self.seed)


def view_run(run: str | Path | TrainedModel, *, number: int = 0, seed: int = 0, device: str = "cpu") -> RunView:
    """Load a run and compute its scores, which are saved in its folder if it is writable."""
    trained = run if isinstance(run, TrainedModel) else load(run, device=device)
    result = evaluate(trained, seed=seed, save=os.access(trained.folder.path, os.W_OK))
    curves = read_curves(trained.folder.logs(), number)
    return RunView(trained, result, curves, checkpoint_step(trained.folder), seed, number)


class ComparisonView(NamedTuple):
    """Several runs on one page."""

    runs: Sequence[RunView]

    @property
    def same_data(self) -> bool:
        return len({run.trained.config.data_key() for run in self.runs}) == 1


@dataclass(frozen=True)
class SweepView:
    """All runs of a sweep, one row each."""

    frame: pd.DataFrame

    @cached_property
    def families(self) -> list[Family]:
        return families(self.frame)

    @property
    def several(self) -> bool:
        return len(self.families) > 1

    @property
    def repeated(self) -> bool:
        """Whether any setting has several seeds."""
        return any(len(group.runs) > 1 for family in self.families for group in family.groups)

    @property
    def diverged(self) -> int:
        return int(self.frame["diverged"].notna().sum())

    @property
    def not_scored(self) -> list[str]:
        """The reasons why runs could not be scored, one for each such run."""
        return [str(reason) for reason in self.frame.get("not_scored", pd.Series(dtype=object)).dropna()]

    @cached_property
    def leading_score(self) -> str | None:
        """The score by which settings are ranked: MIG, or the first score with values and a direction."""
        kept = self.frame.loc[self.frame["diverged"].isna()]
        names = sorted(self.frame.attrs["scores"], key=lambda name: name != "mig")
        return next((name for name in names if sign(name) and np.isfinite(kept[name]).any()), None)

    @property
    def scores(self) -> list[str]:
        """The scores with at least one value."""
        return [name for name in self.frame.attrs["scores"] if np.isfinite(self.frame[name]).any()]


class StudyView(NamedTuple):
    """A study with its published numbers."""

    tables: Mapping[str, Any]  # the text of the page, from `unweave.studies.sheet.text_tables`
    plots: Mapping[str, Sequence[StripRow]]  # the rows of each score


NEEDS: dict[str, dict[str, Callable[[Any], bool]]] = {
    "run": {
        "factors": lambda run: bool(run.result.factor_names),
        "decoder": lambda run: run.trained.representation.decode is not None,
        "parts": lambda run: len(parts := run.trained.representation.parts) > 1 and not any(p.classes for p in parts),
        "classes": lambda run: any(part.classes for part in run.trained.representation.parts)
        or run.trained.representation.classify is not None
        or run.trained.representation.cluster is not None,
        "two latents": lambda run: run.trained.representation.latents == 2,
        "log": lambda run: bool(run.curves),
    },
    "comparison": {
        "differences": lambda page: len({json.dumps(run.trained.config.shown_settings()) for run in page.runs}) > 1,
        "log": lambda page: any(run.curves for run in page.runs),
    },
    "sweep": {"scores": lambda sweep: bool(sweep.scores), "ranking": lambda sweep: sweep.leading_score is not None},
    "study": {
        "published numbers": lambda study: bool(study.tables["comparison"]),
        "scores": lambda study: bool(study.plots),
    },
}
