"""What a study is: the runs of one paper, its published numbers with where they were read, and which belong together.

A study is data. `work.py` trains and scores its runs, `table.py` sets them beside the published numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from unweave.data import Dataset, load_data
from unweave.data.callspec import parse_call
from unweave.metrics import METRICS
from unweave.model import TrainedModel

SCALES = ("quick", "full")
STATISTICS = ("median", "mean", "best", "range", "one model")
PROVENANCE = {
    "read": "read in the source itself",
    "second-hand": "read in a later paper or a list that quotes the source",
    "recalled": "recalled, not checked against the source",
}
RunSpec = dict[str, Any]  # the keywords of `train`
# Data of which `held_out` gives the other part, to count errors on; the small one needs no download.
TESTED = tuple(f"{name}(part='train', size=28)" for name in ("mnist", "fashion_mnist"))
SMALL_TESTED = "split(data='digits(size=16)', part='train', fraction=0.75)"
COMPARED = (
    "our settings were compared by errors of the test images of MNIST, no others were held back, so ours is flattered "
    "there a little; Fashion-MNIST has what was found on MNIST"
)


class Row(NamedTuple):
    """Where a run stands in the table: its family, and its setting inside it ("" if there is only one)."""

    family: str
    setting: str = ""

    @property
    def name(self) -> str:
        return f"{self.family}, {self.setting}" if self.setting else self.family


class Published(NamedTuple):
    """One published number, or range of numbers."""

    row: str  # a family, or the name of one of its settings
    score: str  # as `evaluate` names it
    value: float | tuple[float, float]  # a pair is a range
    statistic: str  # what of the published runs this is, one of STATISTICS
    provenance: str  # one of PROVENANCE
    source: str  # where it stands, in words
    ratio_to: str = ""  # if given, the value is how many times the statistic of that row it is

    @property
    def interval(self) -> tuple[float, float]:
        return self.value if isinstance(self.value, tuple) else (self.value, self.value)


class Study(NamedTuple):
    """One paper's comparison."""

    name: str
    paper: str
    question: str
    runs: Callable[[str], list[RunSpec]]  # of a scale
    row: Callable[[Mapping[str, Any]], Row]  # of a run
    scores: tuple[str, ...]  # what the table shows, as `evaluate` names it
    published: tuple[Published, ...]
    notes: tuple[str, ...] = ()  # in what our runs differ from the paper's
    extra: Callable[[TrainedModel], Mapping[str, float]] | None = None  # scores that no metric gives

    def metrics(self, scale: str) -> list[str]:
        """Return the metrics behind the scores, without those of `extra`; "quick" leaves out slow ones."""
        names = dict.fromkeys(score.partition(".")[0] for score in self.scores)
        return [name for name in names if name in METRICS and (scale == "full" or not METRICS[name].slow)]


def base_name(data: str) -> str:
    """The data set without its options and views: "split(data='rooms(size=16)')" is rooms."""
    name, options = parse_call(data)
    return base_name(str(options["data"])) if "data" in options else name


def held_out_data(data: Dataset) -> Dataset:
    """The other part of a data set whose part "train" this is."""
    part = "validation" if data.name == "split" else "test"
    return load_data(data.name, **{**data.options, "part": part})


def settings_text(run: Mapping[str, Any], *names: str) -> str:
    """ "beta=4" of those names the run has."""
    return ", ".join(f"{name}={run[name]:g}" for name in names if name in run)
