"""Information between a number and a class by nearest neighbours (Ross 2014, Kraskov et al. 2004), in nats.

No bins: around each row, the distance to its k-th neighbour of the same class is compared with how many rows
of any class lie within it. In one dimension neighbours are found by sorting, so no tree is needed.

Shape letters: N rows, D codes, K factors, n rows of one class.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from unweave.metrics.histogram_mi import contingency_table, table_information
from unweave.metrics.inputs import Floats, Indices, MetricInputs, classes, distinct, looks_discrete

_ROUNDING = 8 * np.finfo(np.float64).eps  # of sums and differences of numbers of size 1


def neighbour_distances(sorted_n: Floats, k: int) -> Floats:
    """The distance from each of the sorted numbers to its k-th nearest other one, [n]; k < n."""
    n = len(sorted_n)
    best = np.full(n, np.inf)
    for left in range(k + 1):  # a row and its k nearest are k + 1 numbers in a row: try every place in the window
        start = np.arange(n) - left
        inside = (start >= 0) & (start + k < n)
        first, last = sorted_n[start[inside]], sorted_n[start[inside] + k]
        here = sorted_n[inside]
        best[inside] = np.minimum(best[inside], np.maximum(here - first, last - here))
    return best


def neighbour_information(code_N: Floats, labels_N: Indices, *, neighbours: int = 10) -> float:
    """I(code; class) in nats, at least 0. A class seen once has no neighbour and is left out.

    A code of few, repeated values has no distances to speak of: its values are counted instead.
    """
    from scipy.special import digamma

    if looks_discrete(code_N):
        return table_information(contingency_table(np.searchsorted(distinct(code_N), code_N), labels_N))
    sizes_V = np.bincount(labels_N)
    kept = sizes_V[labels_N] > 1
    if not kept.any():
        return 0.0
    code_n, labels_n = code_N[kept], labels_N[kept]
    all_n = np.sort(code_n)
    terms = 0.0
    for label in np.flatnonzero(np.bincount(labels_n)):
        own = np.sort(code_n[labels_n == label])
        k = min(neighbours, len(own) - 1)
        # Short of the k-th neighbour itself by more than rounding; 0 if it lies at the very same place.
        reach = np.maximum(neighbour_distances(own, k) - _ROUNDING * np.abs(own).max(), 0.0)
        same = np.where(reach > 0, k, _count_within(own, own, reach))
        terms += float((digamma(same) - digamma(len(own)) - digamma(_count_within(all_n, own, reach))).sum())
    return max(float(digamma(len(code_n)) + terms / len(code_n)), 0.0)


def _count_within(sorted_n: Floats, centre: Floats, reach: Floats) -> Indices:
    """How many of the sorted numbers lie within reach of each centre."""
    return np.searchsorted(sorted_n, centre + reach, side="right") - np.searchsorted(sorted_n, centre - reach)


def neighbour_information_matrix(
    table: MetricInputs, factors: Sequence[int], *, neighbours: int = 10
) -> tuple[Floats, Floats]:
    """I(code; factor) in nats [D, K] and H(factor) [K] of the named factors; continuous ones are binned."""
    found = [classes(table, k) for k in factors]
    information_DK = np.array(
        [[neighbour_information(code[rows], labels, neighbours=neighbours) for rows, labels in found]
         for code in table.codes.T]
    )  # fmt: skip
    return information_DK, np.array([table_information(np.diag(np.bincount(labels))) for _, labels in found])
