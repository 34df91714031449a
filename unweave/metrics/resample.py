"""Bootstrap intervals of scores (Efron), by resampling the rows of a table.

Scores that are functions of counts are computed from reweighted counts; other fast scores are computed on resampled
rows. A resampled table repeats rows, which biases information estimates upward, so the deviations of the resampled
scores from their own mean are added to the score.

Shape letters: N rows, R resamples.
"""

from collections.abc import Callable, Iterator, Mapping

import numpy as np

from unweave.errors import UserError
from unweave.metrics.histogram_mi import Binned, Information, count_binned, information_from_counts
from unweave.metrics.inputs import Floats, MetricInputs, select_rows

LEVEL = 0.95


def bootstrap_weights(rows: int, resamples: int, seed: int) -> Iterator[Floats]:
    """Yield how often each row is drawn if N rows are drawn with replacement, [N] per resample."""
    rng = np.random.default_rng(seed)
    for _ in range(resamples):
        yield np.bincount(rng.integers(rows, size=rows), minlength=rows).astype(np.float64)


def bootstrap_counts(
    binned: Binned, scores: Mapping[str, Callable[[Information], float]], *, resamples: int, seed: int
) -> dict[str, Floats]:
    """Return each score on each resample, [R]; all scores share the counts."""
    found: dict[str, list[float]] = {name: [] for name in scores}
    for weights_N in bootstrap_weights(binned.bins_DN.shape[1], resamples, seed):
        known = information_from_counts(count_binned(binned, weights_N))
        with np.errstate(invalid="ignore", divide="ignore"):  # NaN if a factor has a single value left
            for name, score in scores.items():
                found[name].append(score(known))
    return {name: np.array(values) for name, values in found.items()}


def bootstrap_rows(
    table: MetricInputs, score: Callable[[MetricInputs, int], Mapping[str, float]], *, resamples: int, seed: int
) -> dict[str, Floats]:
    """Return each value of `score(table, resample)` on resampled rows, [R]."""
    found: dict[str, list[float]] = {}
    for number, weights_N in enumerate(bootstrap_weights(len(table.codes), resamples, seed)):
        rows = np.repeat(np.arange(len(weights_N)), weights_N.astype(np.int64))
        try:
            numbers = score(select_rows(table, rows), number)
        except UserError:  # no factor varies in the drawn rows
            continue
        for name, value in numbers.items():
            found.setdefault(name, []).append(value)
    return {name: np.array(values) for name, values in found.items()}


def bootstrap_interval(score: float, resampled_R: Floats, low: float, high: float) -> tuple[float, float] | None:
    """Return the 95 % interval of a score, clipped to its range; None with fewer than two finite resamples."""
    known = resampled_R[np.isfinite(resampled_R)]
    if len(known) < 2:
        return None
    tail = (1.0 - LEVEL) / 2.0
    below, above = np.quantile(known - known.mean(), [tail, 1.0 - tail])
    least, most = min(low, high), max(low, high)
    return float(np.clip(score + below, least, most)), float(np.clip(score + above, least, most))
