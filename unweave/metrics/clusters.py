"""How well clusters that were found without labels agree with classes.

Shape letters: N rows, Y clusters.
"""

from __future__ import annotations

import numpy as np
from torch import Tensor

from unweave.errors import UserError, check_choice
from unweave.metrics.inputs import Array, Floats, Indices

Rows = tuple[Array, Array]
NAMED_BY = ("one", "most")


def cluster_labels(probabilities: Array, labels: Array, *, by: str = "one") -> Indices:
    """The label of each cluster [Y], by one of two rules.

    `one`: that of the row that belongs to it most, the first one of several. `most`: the commonest among the rows whose
    likeliest cluster it is, the smallest one of several; a cluster without such rows is named by one.
    """
    check_choice("by", by, NAMED_BY)
    chance_NY, label_N = _read(probabilities, labels)
    label_Y, cluster_N = label_N[chance_NY.argmax(0)], chance_NY.argmax(1)
    for cluster in np.unique(cluster_N) if by == "most" else ():
        names, counts = np.unique(label_N[cluster_N == cluster], return_counts=True)
        label_Y[cluster] = names[counts.argmax()]
    return label_Y


def cluster_error(probabilities: Array, labels: Array, *, validation: Rows | None = None, by: str = "one") -> float:
    """Share of rows whose likeliest cluster has another label (Makhzani et al. 2015, section 6), 0 at best.

    `probabilities` [N, Y] are of the clusters of each row, `labels` [N] its class. Every cluster has the label of the
    validation row that belongs to it most, or with `by="most"` the commonest label of its validation rows. Without
    `validation` (probabilities and labels of other rows) the rows themselves are taken; a single one that gives its
    cluster a name then does not count.
    """
    chance_NY, label_N = _read(probabilities, labels)
    label_Y = cluster_labels(*(validation or (chance_NY, label_N)), by=by)
    if len(label_Y) != chance_NY.shape[1]:
        raise UserError(f"validation has {len(label_Y)} clusters; accepted are the {chance_NY.shape[1]} of the rows")
    counted_N = np.ones(len(label_N), dtype=bool)
    if validation is None and by == "one":
        counted_N[chance_NY.argmax(0)] = False
    if not counted_N.any():
        raise UserError(f"probabilities has {len(label_N)} rows, which all give clusters their labels; give more rows")
    return float((label_Y[chance_NY.argmax(1)] != label_N)[counted_N].mean())


def _read(probabilities: Array, labels: Array) -> tuple[Floats, Indices]:
    chance_NY, label_N = (np.asarray(a.detach().cpu() if isinstance(a, Tensor) else a) for a in (probabilities, labels))
    if chance_NY.ndim != 2 or not chance_NY.size:
        raise UserError(f"probabilities has shape {chance_NY.shape}; accepted is [rows, clusters]")
    if label_N.shape != chance_NY.shape[:1]:
        raise UserError(f"labels has shape {label_N.shape}; accepted is one for each of the {len(chance_NY)} rows")
    if not np.isfinite(chance_NY).all():
        raise UserError("probabilities has values that are not finite; accepted are numbers from 0 to 1")
    return chance_NY.astype(np.float64), label_N
