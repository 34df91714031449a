"""Declaration of a study: the runs that repeat one paper, and its published numbers with their sources.

`work.py` trains and scores the runs; `table.py` compares them with the published numbers.
"""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from unweave.data import Dataset, load_data
from unweave.data.callspec import parse_call
from unweave.metrics import METRICS
from unweave.model import TrainedModel

SCALES = ("quick", "full")
PROVENANCE = {
    "read": "read in the source itself",
    "second-hand": "read in a later paper or a list that quotes the source",
    "recalled": "recalled, not checked against the source",
}
RunSpec = dict[str, Any]  # the keywords of `train`
# Data sets with test data (see `held_out_data`); the digits need no download.
MNIST_SETS = tuple(f"{name}(part='train', size=28)" for name in ("mnist", "fashion_mnist"))
DIGITS = "split(data='digits(size=16)', part='train', fraction=0.75)"
NOTES = (  # notes of the studies that compare test errors
    "our settings were selected by the error on the test images of MNIST, so our results there are slightly "
    "optimistic; Fashion-MNIST uses the settings selected on MNIST",
    "quick: another data set, 1,797 digits of 16 x 16 pixels, a quarter of which are test images, and too few "
    "steps for a comparison with the paper",
)


class Row(NamedTuple):
    """The row of a run in the table: its family, and its setting in the family ("" if there is only one)."""

    family: str
    setting: str = ""

    @property
    def name(self) -> str:
        return f"{self.family}, {self.setting}" if self.setting else self.family


class Published(NamedTuple):
    """One published number, or range of numbers."""

    row: str  # a family, or the name of one of its settings
    score: str  # name of a score of `evaluate`
    value: float | tuple[float, float]  # a pair is a range
    statistic: str  # of the published runs, median, mean, best, range or one model
    provenance: str  # one of PROVENANCE
    source: str  # in words
    ratio_to: str = ""  # if given, the value is the ratio to the statistic of that row

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
    scores: tuple[str, ...]  # names of scores of `evaluate` or `extra`, in the order of the table
    published: tuple[Published, ...]
    notes: tuple[str, ...] = ()  # differences between our runs and those of the paper
    extra: Callable[[TrainedModel], Mapping[str, float]] | None = None  # further scores of a run

    def metrics(self, scale: str) -> list[str]:
        """Return the metrics behind the scores, without those of `extra`; "quick" leaves out slow ones."""
        names = dict.fromkeys(score.partition(".")[0] for score in self.scores)
        return [name for name in names if name in METRICS and (scale == "full" or not METRICS[name].slow)]


def base_name(data: str) -> str:
    """Return the name of a data set without options and views: rooms for "split(data='rooms(size=16)')"."""
    name, options = parse_call(data)
    return base_name(str(options["data"])) if "data" in options else name


def held_out_data(data: Dataset) -> Dataset:
    """Return the test data of a data set whose part "train" this is."""
    part = "validation" if data.name == "split" else "test"
    return load_data(data.name, **{**data.options, "part": part})


def settings_text(run: Mapping[str, Any], *names: str) -> str:
    """Return text such as "beta=4" for those names that the run has."""
    return ", ".join(f"{name}={run[name]:g}" for name in names if name in run)
