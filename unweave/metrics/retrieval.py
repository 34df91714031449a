"""Retrieval: is the nearest other observation of the same class?

Shape letters: N rows, D codes, R rows of a block.
"""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from torch import Tensor

from unweave.errors import check_choice
from unweave.metrics.inputs import Array, array_error, as_matrix

BLOCK = 1 << 24  # distances computed at once


def recall_at_1(codes: Array, classes: ArrayLike | Tensor, *, distance: str = "euclidean") -> float:
    """Return the share of rows whose nearest other row has the same class (Recall@1), in 0..1.

    Codes [N, D]; classes [N], numbers or texts. The only row of a class is not a query, but may be retrieved. Rows at
    the same smallest distance have equal weights.

    >>> recall_at_1([[0.0], [0.1], [5.0], [5.2]], ["a", "a", "b", "a"])
    0.6666666666666666
    """
    check_choice("distance", distance, ("euclidean", "cosine"))
    codes_ND = as_matrix(codes, "codes").astype(np.float64, copy=False)
    labels_N = _labels(classes, len(codes_ND))
    queries = np.flatnonzero(np.bincount(labels_N)[labels_N] > 1)
    if not len(queries):
        raise array_error("classes", "one row per class", "an array with two rows of a class")
    if distance == "cosine":  # Euclidean distance of normalised codes has the same order
        length_N = np.linalg.norm(codes_ND, axis=1)
        codes_ND = codes_ND / np.where(length_N > 0, length_N, 1.0)[:, None]
    rows = max(1, BLOCK // len(codes_ND))
    blocks = (queries[start : start + rows] for start in range(0, len(queries), rows))
    return float(sum(_hits(codes_ND, labels_N, block).sum() for block in blocks) / len(queries))


def _hits(codes_ND: np.ndarray, labels_N: np.ndarray, rows_R: np.ndarray) -> np.ndarray:
    """Return for each row the share of its nearest other rows with the same class."""
    from scipy.spatial.distance import cdist

    square_RN = cdist(codes_ND[rows_R], codes_ND, "sqeuclidean")
    square_RN[np.arange(len(rows_R)), rows_R] = np.inf
    nearest_RN = square_RN == square_RN.min(1, keepdims=True)
    same_RN = labels_N[rows_R][:, None] == labels_N
    return (nearest_RN & same_RN).sum(1) / nearest_RN.sum(1)


def _labels(classes: Any, rows: int) -> np.ndarray:
    """Return the classes as integers 0, 1, ..."""
    given = np.asarray(classes.detach().cpu() if isinstance(classes, Tensor) else classes)
    if given.shape != (rows,):
        raise array_error("classes", f"shape {given.shape}", f"an array of {rows} classes, one per row of codes")
    if given.dtype.kind == "f" and np.isnan(given).any():
        raise array_error("classes", "NaN", "numbers or texts")
    if given.dtype.kind not in "biufUS":
        raise array_error("classes", given.dtype, "numbers or texts")
    return np.unique(given, return_inverse=True)[1]
