"""Mutual information between codes and factors, and the scores that read it.

Everything is counted: codes are cut into equal-width bins, factors are used as they are, and
the probabilities are the relative frequencies in the table of rows. All information is in nats.

Shape letters: N rows, D codes, K factors, V values of one factor.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from torch import Tensor

from unweave.contract import UserError

Table = ArrayLike | Tensor
Floats = NDArray[np.float64]
Indices = NDArray[np.int64]


def as_matrix(values: Table, name: str) -> NDArray[Any]:
    """A numpy array [rows, columns] of finite numbers, or a UserError that names the argument."""
    if isinstance(values, Tensor):
        values = values.detach().cpu()
        # numpy has no bfloat16, so floating tensors are widened while they are still tensors
        values = (values.double() if values.is_floating_point() else values).numpy()
    matrix = np.asarray(values)
    if matrix.dtype.kind not in "fiub":
        raise UserError(f"{name}: holds {matrix.dtype}; accepted are real numbers")
    if matrix.ndim != 2 or 0 in matrix.shape:
        raise UserError(f"{name}: has shape {matrix.shape}; accepted is [rows, columns] with at least one of each")
    if not np.isfinite(matrix).all():
        raise UserError(f"{name}: contains NaN or infinity; accepted are finite numbers")
    return matrix


def as_codes(codes: Table) -> Floats:
    return as_matrix(codes, "codes").astype(np.float64, copy=False)


def factor_indices(factors: Table) -> Indices:
    """Each factor's values numbered 0..V-1 in increasing order, [N, K]; the values may be any numbers."""
    matrix = as_matrix(factors, "factors")
    # Stacked as rows and transposed: columns stay contiguous, which halves the time of counting them.
    return np.stack([np.unique(column, return_inverse=True)[1] for column in matrix.T]).astype(np.int64).T


def as_table(codes: Table, factors: Table) -> tuple[Floats, Indices]:
    """The checked pair every metric starts from: codes [N, D] and factor indices [N, K], row by row."""
    codes_ND, factors_NK = as_codes(codes), factor_indices(factors)
    if len(codes_ND) != len(factors_NK):
        raise UserError(f"factors: has {len(factors_NK)} rows but codes has {len(codes_ND)}; accepted is one row each")
    return codes_ND, factors_NK


def varying_factors(factors_NK: Indices) -> Indices:
    """The columns that take more than one value; the others have nothing that a code could know."""
    varying = np.flatnonzero(factors_NK.max(axis=0) > factors_NK.min(axis=0))
    if not len(varying):
        raise UserError(f"factors: no column varies over {len(factors_NK)} rows; accepted is at least one that does")
    return varying


def at_least(name: str, value: float, least: float) -> None:
    if not value >= least:
        raise UserError(f"{name}: is {value}; accepted is {least} or more")


def discretize(codes: Table, bins: int = 20) -> Indices:
    """Number the equal-width bins 1..bins of each code over that code's own range, [N, D].

    A code with a single value falls into one bin, whatever the value.
    """
    at_least("bins", bins, 1)
    codes_ND = as_codes(codes)
    return np.stack([_bin_numbers(column, bins) for column in codes_ND.T]).T


def _bin_numbers(code_N: Floats, bins: int) -> Indices:
    low, high = code_N.min(), code_N.max()
    if low == high:  # the same widening as np.histogram
        low, high = low - 0.5, high + 0.5
    # The edges of np.histogram, written out: it refuses codes whose range is near the float spacing.
    # Leaving the last edge away puts the largest value into the last bin.
    edges = np.linspace(low, high, bins + 1)[:-1]
    return np.digitize(code_N, edges).astype(np.int64, copy=False)


def contingency_table(left_N: Indices, right_N: Indices) -> Indices:
    """How often each pair of non-negative integers occurs, [max(left) + 1, max(right) + 1]."""
    rows, columns = int(left_N.max()) + 1, int(right_N.max()) + 1
    counts = np.bincount(left_N * columns + right_N, minlength=rows * columns)
    return counts.reshape(rows, columns)


def table_information(counts: Indices) -> float:
    """Mutual information, in nats, between the rows and the columns of a contingency table."""
    i, j = np.nonzero(counts)
    joint = counts[i, j].astype(np.float64)
    row, column = counts.sum(axis=1)[i].astype(np.float64), counts.sum(axis=0)[j].astype(np.float64)
    total = joint.sum()
    # Ratios of products of whole numbers: independence gives log(1), an exact zero, not a rounding error.
    information = (joint / total * np.log(joint * total / (row * column))).sum()
    return max(float(information), 0.0)


def mutual_information_matrix(codes: Table, factors: Table, *, bins: int = 20) -> Floats:
    """I(binned code; factor) in nats, [D, K]."""
    codes_ND, factors_NK = as_table(codes, factors)
    binned_ND = discretize(codes_ND, bins)
    return np.array(
        [[table_information(contingency_table(code, factor)) for factor in factors_NK.T] for code in binned_ND.T]
    )


def entropies(factors: Table) -> Floats:
    """H(factor) in nats, [K]: 0 for a factor with a single value."""
    factors_NK = factor_indices(factors)
    return np.array([table_information(np.diag(np.bincount(factor))) for factor in factors_NK.T])


def mig_per_factor(codes: Table, factors: Table, *, bins: int = 20) -> Floats:
    """The gap of each factor between its two best codes, as a share of its entropy, [K].

    NaN marks a factor with a single value: its share would be 0 / 0.
    """
    _, factors_NK = as_table(codes, factors)
    varying = varying_factors(factors_NK)
    information_DK = mutual_information_matrix(codes, factors_NK[:, varying], bins=bins)
    # A zero row stands for the code that does not exist, so that one code alone has a second best.
    best_DK = np.sort(np.pad(information_DK, ((1, 0), (0, 0))), axis=0)
    gaps_K = np.full(factors_NK.shape[1], np.nan)
    gaps_K[varying] = (best_DK[-1] - best_DK[-2]) / entropies(factors_NK[:, varying])
    return gaps_K


def mig_score(codes: Table, factors: Table, *, bins: int = 20) -> float:
    """Mutual information gap (Chen et al. 2018, section 4, https://arxiv.org/abs/1802.04942), in 0..1.

    Follows disentanglement_lib: codes cut into `bins`, mean over the factors that vary.
    Two factors, each in a code of its own, score 1; the same code twice scores 0:

    >>> factors = [[0, 0], [0, 1], [1, 0], [1, 1]]
    >>> mig_score(factors, factors)
    1.0
    >>> mig_score([[0, 0], [0, 0], [1, 1], [1, 1]], factors)
    0.0
    """
    return float(np.nanmean(mig_per_factor(codes, factors, bins=bins)))
