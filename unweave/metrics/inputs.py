"""What every metric reads: a checked table of codes and factors, and which factors are classes.

A factor is "discrete" (its values are classes) or "continuous" (its values are measurements). Without
`kinds` the dtype decides, column by column: whole-number and boolean arrays are discrete; a column of
floats is discrete if it has few values (`FEW` at most) that are whole numbers or that repeat, five rows
to a value or more. NaN in a factor is a missing value: that row is left out for that factor only.

Shape letters: N rows, D codes, K factors, V values of one factor.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from torch import Tensor

from unweave.errors import UserError

Array = ArrayLike | Tensor
FactorTypes = str | Sequence[str] | None
Floats = NDArray[np.float64]
Indices = NDArray[np.int64]

FEW = 1000  # values a column of floats may have and still be classes
BINS = 20  # equal-width bins of whatever is continuous: disentanglement_lib's number
_LARGEST = 1e150  # beyond, variances overflow
_COUNTED = 1 << 16  # whole numbers up to this far apart are told apart by counting
TRAIN_ROWS, TEST_ROWS = 10_000, 5_000  # the most rows of a split: the field's numbers


class MetricInputs(NamedTuple):
    """Codes and factors, row by row; NaN among the factors is a missing value."""

    codes: Floats  # [N, D], finite
    factors: Floats  # [N, K]
    factor_types: tuple[str, ...]  # [K], "discrete" or "continuous"


def as_matrix(values: Array, name: str, *, missing: bool = False) -> NDArray[Any]:
    """A numpy array [rows, columns] of numbers, or a UserError that names the argument."""
    if isinstance(values, Tensor):
        values = values.detach().cpu()
        # numpy has no bfloat16, so floating tensors of other widths are widened while they are still tensors
        values = (values.double() if values.is_floating_point() else values).numpy()
    matrix = np.asarray(values)
    if matrix.dtype.kind not in "fiub":
        raise UserError(f"{name}: holds {matrix.dtype}; accepted are real numbers")
    if matrix.ndim != 2 or 0 in matrix.shape:
        raise UserError(f"{name}: has shape {matrix.shape}; accepted is [rows, columns] with at least one of each")
    _check_values(matrix, name, missing)
    return matrix


def _check_values(matrix: NDArray[Any], name: str, missing: bool) -> None:
    """Refuse infinities, NaN where nothing may be missing, and numbers whose squares are no numbers."""
    # Without a temporary array of the matrix's size; fmin and fmax pass NaN over, the others hand it on.
    least, most = (np.fmin, np.fmax) if missing else (np.minimum, np.maximum)
    low, high = float(least.reduce(matrix, axis=None)), float(most.reduce(matrix, axis=None))
    if np.isinf(low) or np.isinf(high) or (np.isnan(low) and not missing):
        what, besides = ("infinity", ", and NaN where a value is missing") if missing else ("NaN or infinity", "")
        raise UserError(f"{name}: contains {what}; accepted are finite numbers{besides}")
    if low < -_LARGEST or high > _LARGEST:
        raise UserError(f"{name}: reaches {max(abs(low), abs(high)):.3g}; accepted are numbers up to {_LARGEST:g}")


def read_table(codes: Array, factors: Array, *, factor_types: FactorTypes = None) -> MetricInputs:
    """The checked table of codes [N, D] and factors [N, K], numpy or torch, of any real dtype.

    `kinds` is "discrete" or "continuous", for all factors or for each; None tells them apart by their values.
    """
    codes_ND = as_matrix(codes, "codes").astype(np.float64, copy=False)
    raw_NK = as_matrix(factors, "factors", missing=True)
    if len(codes_ND) != len(raw_NK):
        raise UserError(f"factors: has {len(raw_NK)} rows but codes has {len(codes_ND)}; accepted is one row each")
    return MetricInputs(codes_ND, raw_NK.astype(np.float64, copy=False), infer_factor_types(raw_NK, factor_types))


def infer_factor_types(raw_NK: NDArray[Any], factor_types: FactorTypes = None) -> tuple[str, ...]:
    """The kind of each factor [K], as given or as the values tell."""
    if factor_types is None:
        whole = raw_NK.dtype.kind in "iub"
        return tuple("discrete" if whole or looks_discrete(column) else "continuous" for column in raw_NK.T)
    given = (factor_types,) * raw_NK.shape[1] if isinstance(factor_types, str) else tuple(factor_types)
    if len(given) != raw_NK.shape[1]:
        raise UserError(f"kinds: names {len(given)} factors; accepted is one of each of the {raw_NK.shape[1]}, or one")
    for kind in given:
        if kind not in ("discrete", "continuous"):
            raise UserError(f"kinds: '{kind}' is unknown; accepted are discrete and continuous")
    return given


def looks_discrete(column_N: NDArray[Any]) -> bool:
    """Whether floats are classes: few values, which are whole numbers or repeat five times on average."""
    present = column_N[~np.isnan(column_N)]
    if len(distinct(present[: 10 * FEW])) > FEW:  # a part is enough to tell a long column of measurements
        return False
    values_V = distinct(present)
    return len(values_V) <= FEW and (bool((values_V == np.rint(values_V)).all()) or 5 * len(values_V) <= len(present))


def classes(
    table: MetricInputs, k: int, *, like: MetricInputs | None = None, bins: int = BINS
) -> tuple[Indices, Indices]:
    """The rows [n] where factor k is present, and its classes there [n], numbered 0..V-1 in increasing order.

    A continuous factor is cut into `bins` equal-width bins; empty ones have no number. With `like` (a train
    table) the numbers are those of its classes, and a value that it lacks gets the number V.
    """
    like = like or table
    rows, cells_n = _cells(table, k, like, bins)
    known_V = distinct(cells_n if like is table else _cells(like, k, like, bins)[1])
    if not len(known_V):
        return rows, np.zeros(len(rows), np.int64)
    place_n = np.minimum(np.searchsorted(known_V, cells_n), len(known_V) - 1)
    return rows, np.where(known_V[place_n] == cells_n, place_n, len(known_V)).astype(np.int64, copy=False)


def _cells(table: MetricInputs, k: int, like: MetricInputs, bins: int) -> tuple[Indices, Floats]:
    """The rows where factor k is present, and what tells its classes: values, or bins over the range in `like`."""
    column_N = table.factors[:, k]
    rows = np.flatnonzero(~np.isnan(column_N))
    present_n = column_N[rows]
    range_n = like.factors[:, k][~np.isnan(like.factors[:, k])] if table.factor_types[k] == "continuous" else present_n
    if table.factor_types[k] == "discrete" or not len(range_n):
        return rows, present_n
    numbers = np.digitize(present_n, bin_edges(range_n, bins))
    return rows, np.maximum(numbers, 1).astype(np.float64)  # what lies below the range falls into its first bin


def distinct(values_n: Floats) -> Floats:
    """The different values in increasing order; whole numbers are counted, which is faster than sorting them."""
    if not len(values_n):
        return values_n
    low, high = values_n.min(), values_n.max()
    if high - low <= _COUNTED:
        numbers_n = (values_n - low).astype(np.int64)
        if np.array_equal(numbers_n, values_n - low):
            return np.flatnonzero(np.bincount(numbers_n)) + low
    return np.unique(values_n)


def bin_edges(column_N: Floats, bins: int) -> Floats:
    """The lower edges [bins] of equal-width bins over the column's range.

    The edges of np.histogram, written out: it refuses columns whose range is near the float spacing.
    Without the last edge the largest value falls into the last bin.
    """
    low, high = column_N.min(), column_N.max()
    if low == high:  # the same widening as np.histogram
        low, high = low - 0.5, high + 0.5
    edges: Floats = np.linspace(low, high, bins + 1)[:-1]
    return edges


def varying_factors(table: MetricInputs) -> list[int]:
    """The factors that take more than one value; the others have nothing that a code could know."""
    low_K = np.fmin.reduce(table.factors, axis=0)
    high_K = np.fmax.reduce(table.factors, axis=0)
    found = [k for k in range(len(table.factor_types)) if high_K[k] > low_K[k]]  # false where every value is missing
    if not found:
        raise UserError(f"factors: no column varies over {len(table.factors)} rows; accepted is at least one that does")
    return found


def select_rows(table: MetricInputs, rows: Indices) -> MetricInputs:
    return MetricInputs(table.codes[rows], table.factors[rows], table.factor_types)


def subsample(table: MetricInputs, rows: int, seed: int) -> MetricInputs:
    """The table itself if it has at most `rows` rows, else as many, drawn without replacement by the seed."""
    if len(table.codes) <= rows:
        return table
    drawn = np.random.default_rng(seed).choice(len(table.codes), rows, replace=False, shuffle=False)
    return select_rows(table, drawn)


def read_test(table: MetricInputs, test: tuple[Array, Array] | None, seed: int) -> tuple[MetricInputs, MetricInputs]:
    """The train and the test table: `test` = (codes, factors) as given, or a 2:1 split by the seed.

    A split takes at most 10,000 rows to train and 5,000 to test, so that a large table costs no more.
    """
    if test is not None:
        try:
            other = read_table(*test, factor_types="discrete")._replace(factor_types=table.factor_types)
        except UserError as error:
            raise UserError(f"test: its {error}") from error
        for name, ours, theirs in (("codes", table.codes, other.codes), ("factors", table.factors, other.factors)):
            if ours.shape[1] != theirs.shape[1]:
                raise UserError(
                    f"test: its {name} have {theirs.shape[1]} columns; accepted are the {ours.shape[1]} of {name}"
                )
        return table, other
    if len(table.codes) < 2:
        raise UserError(f"codes: has {len(table.codes)} rows; accepted are 2 or more, or test=(codes, factors)")
    order = np.random.default_rng(seed).permutation(len(table.codes))[: TRAIN_ROWS + TEST_ROWS]
    held_out = max(1, len(order) // 3)
    return select_rows(table, order[held_out:]), select_rows(table, order[:held_out])


def check_at_least(name: str, value: float, least: float) -> None:
    if not value >= least:
        raise UserError(f"{name}: is {value}; accepted is {least} or more")
