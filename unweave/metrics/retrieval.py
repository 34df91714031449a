"""Retrieval: whether the nearest other observation is of the same class.

Shape letters: N rows, D codes, R rows of a block.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from torch import Tensor

from unweave.errors import UserError
from unweave.metrics.inputs import Array, as_matrix

DISTANCES = ("euclidean", "cosine")
_BLOCK = 1 << 24  # distances held at a time


def recall_at_1(codes: Array, classes: ArrayLike | Tensor, *, distance: str = "euclidean") -> float:
    """The share of rows whose nearest other row has their class (Recall@1), 0 to 1.

    Codes [N, D]; classes [N], numbers or texts. A row that is alone in its class cannot be right: it is not asked,
    but may be found. Of several rows at the same smallest distance each counts its part.

    >>> recall_at_1([[0.0], [0.1], [5.0], [5.2]], ["a", "a", "b", "a"])
    0.6666666666666666
    """
    if distance not in DISTANCES:
        raise UserError(f"distance: '{distance}' is unknown; accepted are {' and '.join(DISTANCES)}")
    codes_ND = as_matrix(codes, "codes").astype(np.float64, copy=False)
    labels_N = _labels(classes, len(codes_ND))
    asked = np.flatnonzero(np.bincount(labels_N)[labels_N] > 1)
    if not len(asked):
        raise UserError("classes: no class has two rows; accepted are classes of which at least one has")
    if distance == "cosine":  # as Euclidean distance on the sphere: the order is the same
        length_N = np.linalg.norm(codes_ND, axis=1)
        codes_ND = codes_ND / np.where(length_N > 0, length_N, 1.0)[:, None]
    rows = max(1, _BLOCK // len(codes_ND))
    blocks = (asked[start : start + rows] for start in range(0, len(asked), rows))
    return float(sum(_right(codes_ND, labels_N, block).sum() for block in blocks) / len(asked))


def _right(codes_ND: np.ndarray, labels_N: np.ndarray, rows_R: np.ndarray) -> np.ndarray:
    """Of each of these rows, the part of its nearest others that has its class."""
    from scipy.spatial.distance import cdist

    square_RN = cdist(codes_ND[rows_R], codes_ND, "sqeuclidean")
    square_RN[np.arange(len(rows_R)), rows_R] = np.inf
    nearest_RN = square_RN == square_RN.min(1, keepdims=True)
    same_RN = labels_N[rows_R][:, None] == labels_N
    return (nearest_RN & same_RN).sum(1) / nearest_RN.sum(1)


def _labels(classes: Any, rows: int) -> np.ndarray:
    """Classes as numbers 0, 1, ..."""
    given = np.asarray(classes.detach().cpu() if isinstance(classes, Tensor) else classes)
    if given.shape != (rows,):
        raise UserError(f"classes: has shape {given.shape}; accepted is one class for each of the {rows} rows of codes")
    if given.dtype.kind == "f" and np.isnan(given).any():
        raise UserError("classes: contains NaN; accepted are numbers or texts, one for each row")
    if given.dtype.kind not in "biufUS":
        raise UserError(f"classes: holds {given.dtype}; accepted are numbers or texts, one for each row")
    return np.unique(given, return_inverse=True)[1]
