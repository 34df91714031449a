"""Nearest-neighbour estimate of the mutual information of a number and a class (Ross 2014, Kraskov et al. 2004).

For each row, counts the rows of any class within the distance to its k-th neighbour of the same class. In one
dimension, neighbours are found by sorting. Information is in nats.

Shape letters: N rows, D codes, K factors, n rows of one class.
"""

from collections.abc import Sequence

import numpy as np

from unweave.metrics.histogram_mi import contingency_table, entropy, mutual_information
from unweave.metrics.inputs import Floats, Indices, MetricInputs, classes, distinct, looks_discrete

_ROUNDING = 8 * np.finfo(np.float64).eps  # relative rounding error of sums and differences


def neighbour_distances(sorted_n: Floats, k: int) -> Floats:
    """Return the distance from each sorted number to its k-th nearest other one, [n]; k < n."""
    n = len(sorted_n)
    best = np.full(n, np.inf)
    for left in range(k + 1):  # k + 1 consecutive numbers contain the k nearest: try each window
        start = np.arange(n) - left
        inside = (start >= 0) & (start + k < n)
        first, last = sorted_n[start[inside]], sorted_n[start[inside] + k]
        here = sorted_n[inside]
        best[inside] = np.minimum(best[inside], np.maximum(here - first, last - here))
    return best


def neighbour_information(code_N: Floats, labels_N: Indices, *, neighbours: int = 10) -> float:
    """Return I(code; class) in nats, at least 0. Classes with a single row are left out.

    If the code has few, repeated values, these are counted instead of using distances.
    """
    from scipy.special import digamma

    if looks_discrete(code_N):
        return mutual_information(contingency_table(np.searchsorted(distinct(code_N), code_N), labels_N))
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
        # Below the distance to the k-th neighbour by more than a rounding error; 0 if that distance is 0.
        reach = np.maximum(neighbour_distances(own, k) - _ROUNDING * np.abs(own).max(), 0.0)
        same = np.where(reach > 0, k, _count_within(own, own, reach))
        terms += float((digamma(same) - digamma(len(own)) - digamma(_count_within(all_n, own, reach))).sum())
    return max(float(digamma(len(code_n)) + terms / len(code_n)), 0.0)


def _count_within(sorted_n: Floats, centre: Floats, reach: Floats) -> Indices:
    """Return how many of the sorted numbers lie within reach of each centre."""
    return np.searchsorted(sorted_n, centre + reach, side="right") - np.searchsorted(sorted_n, centre - reach)


def neighbour_information_matrix(
    table: MetricInputs, factors: Sequence[int], *, neighbours: int = 10
) -> tuple[Floats, Floats]:
    """Return I(code; factor) [D, K] and H(factor) [K] in nats for these factors; continuous ones are binned."""
    found = [classes(table, k) for k in factors]
    information_DK = np.array(
        [[neighbour_information(code[rows], labels, neighbours=neighbours) for rows, labels in found]
         for code in table.codes.T]
    )  # fmt: skip
    return information_DK, np.array([entropy(labels) for _, labels in found])
