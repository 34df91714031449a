"""Factors from columns: of a CSV or Parquet table, of arrays, of names.

A factor is discrete (texts, integers) or continuous (numbers with fractions). Values may be missing. `factor_values`
decides what is a number, a text or missing.

Shape letters: N observations, K factors.
"""

from __future__ import annotations

import hashlib
import warnings
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, Protocol, TypeVar

import numpy as np

from unweave.data.ranges import Span, class_spans
from unweave.data.user.factor_values import Values, read_earlier_values, read_values
from unweave.errors import UserError, UserNotice, check_choice, invalid

T = TypeVar("T", bound="HasTable")
FACTOR_TYPES = ("discrete", "continuous")
_MAX_VALUES = 50  # a continuous factor with more different values is binned
_BINS = 20
MAX_COLUMNS = 10_000


class FactorTable(NamedTuple):
    """Factors of N observations, each as a class and as a number."""

    names: tuple[str, ...]
    factor_types: tuple[str, ...]
    values: tuple[tuple[float | str, ...], ...]  # the value of each class; of a binned factor, the median
    classes_NK: np.ndarray  # int64; -1 if missing
    numbers_NK: np.ndarray  # float64: the value if continuous, the class if discrete; nan if missing
    spans: tuple[tuple[Span, ...], ...]  # of a binned factor, the range of each class; of others ()
    notes: tuple[str, ...] = ()  # entries of the columns that were not read as they are written

    def digest(self) -> str:
        """Return eight letters that change if the factors change."""
        text = repr((self.names, self.factor_types, self.values)).encode()
        return hashlib.blake2b(text + self.numbers_NK.tobytes(), digest_size=4).hexdigest()


class HasTable(Protocol):
    """Factors with further information about their source."""

    @property
    def table(self) -> FactorTable: ...


def factor_table(
    columns: Mapping[str, Any],
    factor_types: Mapping[str, str] | None = None,
    *,
    select: Sequence[str] | None = None,
    keep: bool = False,
    names: Collection[str] = (),
    earlier: bool = False,
) -> tuple[FactorTable, dict[str, str]]:
    """Return the columns as factors, and the reason for each column that is left out (none if `keep` or `select`).

    `factor_types` overrides the type suggested by the values, `select` names the columns to use, and `names` those that
    contain names of classes. `earlier` applies the rules of earlier versions.
    """
    for name in select or ():
        check_choice("column", name, columns, context="columns")
    columns, keep = ({name: columns[name] for name in select}, True) if select else (columns, keep)
    check_column_count(len(columns), "columns")
    given = factor_types or {}
    for name, factor_type in given.items():
        check_choice("factor", name, columns, context="factor_types")
        check_choice("factor_types", factor_type, FACTOR_TYPES, context=f"factor {name!r}")
    factors, excluded = [], {}
    for name, column in columns.items():
        if earlier:
            values = read_earlier_values(column, names=name in names)
        else:
            values = read_values(column, names=name in names, numeric=given.get(name) == "continuous")
        if not keep and (reason := _reason_to_exclude(values, requested=name in given)):
            excluded[str(name)] = "; ".join([reason, *values.notes])
        else:
            factors.append(_factor(str(name), values, given.get(name)))
    count = len(next(iter(columns.values()))) if len(columns) else 0
    if not factors:
        return no_factors(count), excluded
    return concatenate(factors), excluded


def read_as_stored(read: Callable[[bool], T], fingerprint: str | None, path: Path) -> T:
    """Return `read(False)`, or the factors by the earlier rules, `read(True)`, if a run was trained on those.

    The last part of a fingerprint is the digest of the table. What is read has a `table`.
    """
    current = read(False)
    if fingerprint is None or fingerprint.endswith(current.table.digest()):
        return current
    try:
        earlier = read(True)
    except UserError:  # the table has other columns now
        return current
    if not fingerprint.endswith(earlier.table.digest()):
        return current
    text = "are read by the rules of an earlier version, with which the run was trained; new runs read some differently"
    warnings.warn(f"factors of '{path}' {text}", UserNotice, stacklevel=4)
    return earlier


def no_factors(count: int) -> FactorTable:
    """Return a table of `count` observations without factors."""
    return FactorTable((), (), (), np.empty((count, 0), np.int64), np.empty((count, 0), np.float64), ())


def concatenate(tables: Sequence[FactorTable]) -> FactorTable:
    """Return the factors of several tables of the same observations."""
    names, types, values, classes, numbers, spans, notes = (list(column) for column in zip(*tables))
    classes_NK, numbers_NK = np.hstack(classes), np.hstack(numbers)
    joined = [tuple(entry for part in parts for entry in part) for parts in (names, types, values, spans, notes)]
    return FactorTable(joined[0], joined[1], joined[2], classes_NK, numbers_NK, joined[3], joined[4])


def text_factor(name: str, texts: Sequence[str | None]) -> FactorTable:
    """Return texts as a discrete factor with one class per text, in their order; None is missing."""
    known_N = np.array([text is not None for text in texts], dtype=bool)
    return _factor(name, Values(np.array([t for t in texts if t is not None], dtype=object), known_N), None)


def _reason_to_exclude(values: Values, requested: bool) -> str:
    """Return why a column is not a factor; "" if it is one."""
    if not len(values.present):
        return "no values"
    different = len(set(values.present.tolist()))
    if different == 1:
        return f"always {repr_value(values.present.tolist()[0])}"
    if values.are_texts and different == len(values.present) > 20 and not requested:
        return "a different text in every row"
    return ""


def _factor(name: str, values: Values, factor_type: str | None) -> FactorTable:
    """Return one factor with its classes in increasing order."""
    present, known_N = values.present, values.known_N
    if values.are_texts:
        if factor_type == "continuous":
            text = f"texts such as {repr_value(present[0])}" if len(present) else "no values"
            raise invalid("factor_types", text, "numbers to be continuous", context=f"factor {name!r}")
        factor_type = "discrete"
    integers = present.dtype.kind in "iu" or (not values.are_texts and bool((present == np.round(present)).all()))
    factor_type = factor_type or ("discrete" if integers else "continuous")
    classes_values, classes = _classes(present)
    spans: tuple[Span, ...] = ()
    if factor_type == "continuous":
        present = _as_floats(name, present)
        if len(classes_values) > _MAX_VALUES:
            classes_values, classes = _bin(present)
            spans = class_spans(present, classes)
    classes_N1 = np.full((len(known_N), 1), -1, np.int64)
    classes_N1[known_N, 0] = classes
    numbers_N1 = np.full((len(known_N), 1), np.nan)
    numbers_N1[known_N, 0] = present if factor_type == "continuous" else classes
    notes = tuple(f"factor {name!r}: {note}" for note in values.notes)
    return FactorTable((name,), (factor_type,), (tuple(classes_values),), classes_N1, numbers_N1, (spans,), notes)


def _classes(present: np.ndarray) -> tuple[list[Any], np.ndarray]:
    """Return the different values in increasing order, and the position of each value among them."""
    if present.dtype != object:
        numbers, classes = np.unique(present, return_inverse=True)
        return numbers.tolist(), classes
    values = sorted(set(present.tolist()))
    number = {value: position for position, value in enumerate(values)}
    return values, np.fromiter((number[value] for value in present), np.int64, len(present))


def _as_floats(name: str, integers: np.ndarray) -> np.ndarray:
    """Return the numbers of a continuous factor as float64; raise if integers of 64 bits would become equal."""
    floats = integers.astype(np.float64)
    if len(np.unique(floats)) < len(np.unique(integers)):
        shown, context = f"integers such as {integers[0]}", f"factor {name!r}"
        hint = "subtract a constant so that they are smaller than 2^53"
        raise invalid(
            "factor_types", shown, "numbers that differ as float64 to be continuous", context=context, hint=hint
        )
    return floats


def check_column_count(count: int, argument: str, context: str = "") -> None:
    """Raise if there are too many columns; each is examined by itself."""
    if count > MAX_COLUMNS:
        raise invalid(argument, f"{count:,} columns", f"at most {MAX_COLUMNS:,} columns", context=context)


def _bin(numbers: np.ndarray) -> tuple[list[float], np.ndarray]:
    """Return the median and the members of bins of about equal counts; one outlier would empty bins of equal width."""
    edges = np.unique(np.quantile(numbers, np.linspace(0, 1, _BINS + 1)[1:-1]))
    bins = np.searchsorted(edges, numbers, side="right")
    used, classes = np.unique(bins, return_inverse=True)
    return [float(np.median(numbers[classes == c])) for c in range(len(used))], classes


def repr_value(value: float | str) -> str:
    """Format a value for display; integers with all their digits, so that ids stay different."""
    if not isinstance(value, float | int | np.number):
        return f"'{value}'"
    return f"{int(value)}" if (abs(value) < 2**53 and value == int(value)) or isinstance(value, int) else f"{value:.6g}"
