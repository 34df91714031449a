"""Intervals by resampling the rows of a table (Efron's bootstrap), without encoding or training anything again.

Scores that are read off counts get the same counts with other weights on the rows; the others that are cheap
are computed on drawn rows. A drawn table repeats rows, which biases counted information upward; so the spread
of the resampled scores is taken about their own mean and laid about the score.

Shape letters: N rows, R resamples.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

import numpy as np

from unweave.errors import UserError
from unweave.metrics.histogram_mi import Binned, Information, count, information_from_counts
from unweave.metrics.inputs import Floats, MetricInputs, select_rows

LEVEL = 0.95


def bootstrap_weights(rows: int, resamples: int, seed: int) -> Iterator[Floats]:
    """How often each row is drawn when as many rows are drawn with replacement, [N] per resample."""
    rng = np.random.default_rng(seed)
    for _ in range(resamples):
        yield np.bincount(rng.integers(rows, size=rows), minlength=rows).astype(np.float64)


def bootstrap_counts(
    binned: Binned, scores: Mapping[str, Callable[[Information], float]], *, resamples: int, seed: int
) -> dict[str, Floats]:
    """Each score of each resample, [R]; the counts are made once for all of them."""
    found: dict[str, list[float]] = {name: [] for name in scores}
    for weights_N in bootstrap_weights(binned.bins_DN.shape[1], resamples, seed):
        known = information_from_counts(count(binned, weights_N))
        with np.errstate(invalid="ignore", divide="ignore"):  # a factor may be left with one value: no number
            for name, score in scores.items():
                found[name].append(score(known))
    return {name: np.array(values) for name, values in found.items()}


def bootstrap_rows(
    table: MetricInputs, score: Callable[[MetricInputs, int], Mapping[str, float]], *, resamples: int, seed: int
) -> dict[str, Floats]:
    """Each number of a score computed anew on drawn rows, [R]; the score gets the number of the resample too."""
    found: dict[str, list[float]] = {}
    for number, weights_N in enumerate(bootstrap_weights(len(table.codes), resamples, seed)):
        rows = np.repeat(np.arange(len(weights_N)), weights_N.astype(np.int64))
        try:
            numbers = score(select_rows(table, rows), number)
        except UserError:  # nothing varies in the drawn rows
            continue
        for name, value in numbers.items():
            found.setdefault(name, []).append(value)
    return {name: np.array(values) for name, values in found.items()}


def bootstrap_interval(score: float, resampled_R: Floats, low: float, high: float) -> tuple[float, float] | None:
    """The interval about a score that holds 95 % of the resampled deviations, inside the score's range."""
    known = resampled_R[np.isfinite(resampled_R)]
    if len(known) < 2:
        return None
    tail = (1.0 - LEVEL) / 2.0
    below, above = np.quantile(known - known.mean(), [tail, 1.0 - tail])
    least, most = min(low, high), max(low, high)
    return float(np.clip(score + below, least, most)), float(np.clip(score + above, least, most))
