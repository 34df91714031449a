"""Agreement of clusters that were learned without labels with classes.

Shape letters: N rows, Y clusters.
"""

import numpy as np
from torch import Tensor

from unweave.errors import check_choice
from unweave.metrics.inputs import Array, Floats, Indices, array_error

Rows = tuple[Array, Array]


def cluster_labels(probabilities: Array, labels: Array, *, by: str = "one") -> Indices:
    """Return the label of each cluster [Y], by one of two rules.

    `one`: the label of the row with the highest probability of the cluster (the first of several). `most`: the most
    frequent label of the rows in the cluster (the smallest of several), or by `one` if the cluster is empty.
    """
    check_choice("by", by, ("one", "most"))
    probs_NY, label_N = _read(probabilities, labels)
    label_Y, cluster_N = label_N[probs_NY.argmax(0)], probs_NY.argmax(1)
    for cluster in np.unique(cluster_N) if by == "most" else ():
        names, counts = np.unique(label_N[cluster_N == cluster], return_counts=True)
        label_Y[cluster] = names[counts.argmax()]
    return label_Y


def cluster_error(probabilities: Array, labels: Array, *, validation: Rows | None = None, by: str = "one") -> float:
    """Return the share of rows whose most probable cluster has another label (Makhzani et al. 2015, section 6).

    `probabilities` [N, Y] are cluster probabilities and `labels` [N] classes. The clusters get their labels from
    `validation` (probabilities and labels of other rows) by the rules of `cluster_labels`. Without it they get them
    from the rows themselves; with `by="one"` the rows that determine a label are then not counted.
    """
    probs_NY, label_N = _read(probabilities, labels)
    label_Y = cluster_labels(*(validation or (probs_NY, label_N)), by=by)
    if len(label_Y) != probs_NY.shape[1]:
        raise array_error("validation", f"{len(label_Y)} clusters", f"probabilities of {probs_NY.shape[1]} clusters")
    counted_N = np.ones(len(label_N), dtype=bool)
    if validation is None and by == "one":
        counted_N[probs_NY.argmax(0)] = False
    if not counted_N.any():
        raise array_error("probabilities", f"{len(label_N)} rows", "more rows than determine the labels of clusters")
    return float((label_Y[probs_NY.argmax(1)] != label_N)[counted_N].mean())


def _read(probabilities: Array, labels: Array) -> tuple[Floats, Indices]:
    probs_NY, label_N = (np.asarray(a.detach().cpu() if isinstance(a, Tensor) else a) for a in (probabilities, labels))
    if probs_NY.ndim != 2 or not probs_NY.size:
        raise array_error("probabilities", f"shape {probs_NY.shape}", "an array [rows, clusters]")
    if label_N.shape != probs_NY.shape[:1]:
        raise array_error("labels", f"shape {label_N.shape}", f"an array of {len(probs_NY)} labels, one per row")
    if not np.isfinite(probs_NY).all():
        raise array_error("probabilities", "NaN or infinity", "numbers from 0 to 1")
    return probs_NY.astype(np.float64), label_N
