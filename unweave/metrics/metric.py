"""The declaration of a metric, with what commands, reports and the conformance tests need to know about it."""

import inspect
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from unweave.metrics.histogram_mi import Information

ALL_INVARIANCES = ("permutation", "scale", "sign")


class Metric(NamedTuple):
    """A metric: its function, a description, and its properties."""

    name: str  # on the command line and in scores
    function: Callable[..., Any]  # (codes, factors, *, options) -> a float, or a dict of floats if it has parts
    title: str
    description: str  # one sentence
    definition: str  # whose definition this is, in a few words
    worst: float = 0.0  # the range of the score; its two ends in any order if `better` is "neither"
    best: float = 1.0
    better: str = "higher"  # or "lower", or "neither"
    parts: Mapping[str, str] = {}  # the names of several scores, each with its description
    # Transformations of the codes that leave the score unchanged: reordering, changing signs, and multiplying by
    # positive factors (as long as no code falls below a threshold for inactive codes).
    invariant: tuple[str, ...] = ALL_INVARIANCES
    rows: int | None = 10_000  # number of rows that `evaluate` passes, as the authors of the metric use; None is all
    factors: int = 1  # the number of varying factors it needs to be meaningful
    needs: tuple[str, ...] = ()  # inputs besides codes and factors: "posterior" (mean and logvar) or "groups"
    from_information: Callable[[Information], float] | None = None  # the same score from counts, for the bootstrap
    with_importance: Callable[..., Any] | None = None  # the same scores together with an importance matrix [D, K]
    bootstrap: bool = False  # cheap enough to be computed on every bootstrap sample
    quick: bool = False  # `evaluate` computes it by default
    slow: bool = False  # takes about ten seconds per model on a CPU; left out of quick studies
    test_options: Mapping[str, Any] = {}  # options that make the function faster in tests of its properties

    @property
    def random(self) -> bool:
        """True if the metric draws random numbers: its function takes a seed."""
        return "seed" in inspect.signature(self.function).parameters

    @property
    def split(self) -> bool:
        """True if the metric fits a predictor: its function takes test=(codes, factors), or splits by the seed."""
        return "test" in inspect.signature(self.function).parameters
