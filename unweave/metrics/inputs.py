"""Input of all metrics: a checked table of codes and factors, with the type of each factor.

A factor is "discrete" (its values are classes) or "continuous" (its values are measurements). If `factor_types` is
not given, integer and boolean arrays are discrete; a column of floats is discrete if it has at most `FEW` distinct
values that are integers or occur five times on average. NaN in a factor is a missing value: that row is ignored for
that factor only.

Shape letters: N rows, D codes, K factors, V values of one factor.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from torch import Tensor

from unweave.errors import UserError, check_choice, invalid

Array = ArrayLike | Tensor
FactorTypes = str | Sequence[str] | None
TestRows = tuple[Array, Array] | None  # codes and factors
Floats = NDArray[np.float64]
Indices = NDArray[np.int64]

FEW = 1000  # largest number of distinct values of a discrete column of floats
BINS = 20  # equal-width bins of codes and continuous factors, as in disentanglement_lib
_LARGEST = 1e150  # beyond, variances overflow
_COUNTED = 1 << 16  # largest range of integers whose distinct values are found by counting
TRAIN_ROWS, TEST_ROWS = 10_000, 5_000  # largest sizes of a split, as in disentanglement_lib


class MetricInputs(NamedTuple):
    """Codes and factors, row by row; NaN in a factor is a missing value."""

    codes: Floats  # [N, D], finite
    factors: Floats  # [N, K]
    factor_types: tuple[str, ...]  # [K], "discrete" or "continuous"


def array_error(name: str, found: object, accepted: str) -> UserError:
    """Return the error that the array `name`, described by `found`, must be `accepted`."""
    return UserError(f"{name} must be {accepted}, got {found}", argument=name, value=found, accepted=accepted)


def as_matrix(values: Array, name: str, *, missing: bool = False) -> NDArray[Any]:
    """Return a numpy array [rows, columns] of finite numbers; NaN is accepted if values may be `missing`."""
    if isinstance(values, Tensor):
        values = values.detach().cpu()
        # numpy has no bfloat16, so tensors of floats are converted first
        values = (values.double() if values.is_floating_point() else values).numpy()
    matrix = np.asarray(values)
    if matrix.dtype.kind not in "fiub":
        raise array_error(name, matrix.dtype, "an array of real numbers")
    if matrix.ndim != 2 or 0 in matrix.shape:
        raise array_error(name, f"shape {matrix.shape}", "an array [rows, columns] with at least one of each")
    _check_values(matrix, name, missing)
    return matrix


def _check_values(matrix: NDArray[Any], name: str, missing: bool) -> None:
    """Raise if there are infinities, NaN that are not missing values, or numbers whose squares overflow."""
    # No temporary array of the size of the matrix: fmin and fmax ignore NaN, minimum and maximum propagate it.
    least, most = (np.fmin, np.fmax) if missing else (np.minimum, np.maximum)
    low, high = float(least.reduce(matrix, axis=None)), float(most.reduce(matrix, axis=None))
    if np.isinf(low) or np.isinf(high) or (np.isnan(low) and not missing):
        found = "infinity" if missing else "NaN or infinity"
        raise array_error(name, found, "finite numbers, or NaN for a missing value" if missing else "finite numbers")
    if low < -_LARGEST or high > _LARGEST:
        raise array_error(name, f"{max(abs(low), abs(high)):.3g}", f"numbers up to {_LARGEST:g}")


def read_table(codes: Array, factors: Array, *, factor_types: FactorTypes = None) -> MetricInputs:
    """Return the checked table of codes [N, D] and factors [N, K], numpy or torch, of any real dtype.

    `factor_types` is "discrete" or "continuous", for all factors or for each; None infers them from the values.
    """
    codes_ND = as_matrix(codes, "codes").astype(np.float64, copy=False)
    raw_NK = as_matrix(factors, "factors", missing=True)
    if len(codes_ND) != len(raw_NK):
        raise array_error("factors", f"{len(raw_NK)} rows", f"an array of {len(codes_ND)} rows, like codes")
    return MetricInputs(codes_ND, raw_NK.astype(np.float64, copy=False), infer_factor_types(raw_NK, factor_types))


def infer_factor_types(raw_NK: NDArray[Any], factor_types: FactorTypes = None) -> tuple[str, ...]:
    """Return the type of each factor [K], as given or inferred from the values."""
    if factor_types is None:
        integers = raw_NK.dtype.kind in "iub"
        return tuple("discrete" if integers or looks_discrete(column) else "continuous" for column in raw_NK.T)
    given = (factor_types,) * raw_NK.shape[1] if isinstance(factor_types, str) else tuple(factor_types)
    if len(given) != raw_NK.shape[1]:
        raise array_error("factor_types", f"{len(given)} types", f"one type, or {raw_NK.shape[1]}, one per factor")
    for factor_type in given:
        check_choice("factor_types", factor_type, ("discrete", "continuous"))
    return given


def looks_discrete(column_N: NDArray[Any]) -> bool:
    """Return True if floats have few distinct values, which are integers or occur five times on average."""
    present = column_N[~np.isnan(column_N)]
    if len(distinct(present[: 10 * FEW])) > FEW:  # avoids sorting a long column
        return False
    values_V = distinct(present)
    return len(values_V) <= FEW and (bool((values_V == np.rint(values_V)).all()) or 5 * len(values_V) <= len(present))


def classes(
    table: MetricInputs, k: int, *, like: MetricInputs | None = None, bins: int = BINS
) -> tuple[Indices, Indices]:
    """Return the rows [n] with a value of factor k and their classes [n], numbered 0..V-1 in increasing order.

    A continuous factor is divided into `bins` equal-width bins; empty bins are not numbered. With `like` (a train
    table) the classes are numbered as there, and a value that it lacks gets the number V.
    """
    like = like or table
    rows, cells_n = _cells(table, k, like, bins)
    known_V = distinct(cells_n if like is table else _cells(like, k, like, bins)[1])
    if not len(known_V):
        return rows, np.zeros(len(rows), np.int64)
    class_n = np.minimum(np.searchsorted(known_V, cells_n), len(known_V) - 1)
    return rows, np.where(known_V[class_n] == cells_n, class_n, len(known_V)).astype(np.int64, copy=False)


def _cells(table: MetricInputs, k: int, like: MetricInputs, bins: int) -> tuple[Indices, Floats]:
    """Return the rows with a value of factor k and these values, binned over the range in `like` if continuous."""
    column_N = table.factors[:, k]
    rows = np.flatnonzero(~np.isnan(column_N))
    present_n = column_N[rows]
    range_n = like.factors[:, k][~np.isnan(like.factors[:, k])] if table.factor_types[k] == "continuous" else present_n
    if table.factor_types[k] == "discrete" or not len(range_n):
        return rows, present_n
    numbers = np.digitize(present_n, bin_edges(range_n, bins))
    return rows, np.maximum(numbers, 1).astype(np.float64)  # values below the range go into the first bin


def distinct(values_n: Floats) -> Floats:
    """Return the distinct values in increasing order; integers are counted, which is faster than sorting."""
    if not len(values_n):
        return values_n
    low, high = values_n.min(), values_n.max()
    if high - low <= _COUNTED:
        numbers_n = (values_n - low).astype(np.int64)
        if np.array_equal(numbers_n, values_n - low):
            return np.flatnonzero(np.bincount(numbers_n)) + low
    return np.unique(values_n)


def bin_edges(column_N: Floats, bins: int) -> Floats:
    """Return the lower edges [bins] of equal-width bins over the column's range, as np.histogram computes them.

    np.histogram itself fails if the range is near the float spacing. The last edge is left out, so that the largest
    value falls into the last bin.
    """
    low, high = column_N.min(), column_N.max()
    if low == high:  # the same widening as np.histogram
        low, high = low - 0.5, high + 0.5
    return np.linspace(low, high, bins + 1)[:-1]


def varying_factors(table: MetricInputs, *, required: bool = True) -> list[int]:
    """Return the factors with more than one value; raise if there are none, unless not `required`.

    A code cannot have information about the other factors.
    """
    low_K, high_K = np.fmin.reduce(table.factors, axis=0), np.fmax.reduce(table.factors, axis=0)
    found = [int(k) for k in np.flatnonzero(high_K > low_K)]  # False if all values are missing
    if required and not found:
        raise array_error("factors", f"constants over {len(table.factors)} rows", "an array with a column that varies")
    return found


def select_rows(table: MetricInputs, rows: Indices) -> MetricInputs:
    return MetricInputs(table.codes[rows], table.factors[rows], table.factor_types)


def subsample(table: MetricInputs, rows: int, seed: int) -> MetricInputs:
    """Return at most `rows` rows of the table, drawn without replacement with the seed."""
    if len(table.codes) <= rows:
        return table
    drawn = np.random.default_rng(seed).choice(len(table.codes), rows, replace=False, shuffle=False)
    return select_rows(table, drawn)


def read_test(table: MetricInputs, test: TestRows, seed: int) -> tuple[MetricInputs, MetricInputs]:
    """Return the train and the test table: `test` = (codes, factors) if given, or else a random 2:1 split.

    A split has at most 10,000 train rows and 5,000 test rows, which limits the cost for large tables.
    """
    if test is not None:
        try:
            other = read_table(*test, factor_types="discrete")._replace(factor_types=table.factor_types)
        except UserError as error:
            message = f"test: {error}"
            raise UserError(message, argument="test", value=error.value, accepted=error.accepted) from error
        for name, ours, theirs in (("codes", table.codes, other.codes), ("factors", table.factors, other.factors)):
            if ours.shape[1] != theirs.shape[1]:
                found = f"{theirs.shape[1]} columns of {name}"
                raise array_error("test", found, f"{name} with {ours.shape[1]} columns")
        return table, other
    if len(table.codes) < 2:
        raise array_error("codes", f"{len(table.codes)} rows", "2 rows or more, or given with test=(codes, factors)")
    order = np.random.default_rng(seed).permutation(len(table.codes))[: TRAIN_ROWS + TEST_ROWS]
    held_out = max(1, len(order) // 3)
    return select_rows(table, order[held_out:]), select_rows(table, order[:held_out])


def check_at_least(name: str, value: float, least: float) -> None:
    if not value >= least:
        raise invalid(name, value, f">= {least}")
