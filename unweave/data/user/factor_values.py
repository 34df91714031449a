"""Read the values of a factor: numbers, texts, or missing.

Every source of factors uses these rules: columns of a .csv, .tsv or Parquet table, arrays, the names of sub-folders,
and the labels of PyTorch and Hugging Face data sets. `docs/guide/own_data.md` states them for users.

1. A text in `MISSING` is a missing value. If all other texts of a column are numbers, one in `MISSING_AMONG_NUMBERS`
   is missing as well. Names of classes (sub-folders, class names of a data set) are never missing.
2. A column is numeric if all its texts are numbers, no two different texts are the same number (1.1 and 1.10), and none
   is an integer with leading zeros (007). Otherwise all its values are texts. A requested type of "continuous" makes
   numbers of all texts that are numbers.
3. Integers are exact up to 64 bits; longer ones are texts. Booleans are 0 and 1. Dates and times are texts.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from unweave.errors import invalid

if TYPE_CHECKING:
    import pandas as pd

MISSING = ("", "nan", "NaN", "NAN", "-nan", "-NaN", "<NA>", "#N/A", "NaT")
MISSING_AMONG_NUMBERS = ("na", "n/a", "none", "null", "nan")  # in any capitalisation
_INFINITE = ("inf", "-inf", "+inf", "infinity", "-infinity", "+infinity")
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)
_INTEGER = re.compile(r"[+-]?\d+", re.ASCII)
_LEADING_ZEROS = re.compile(r"[+-]?0\d+", re.ASCII)
_EXACT = 2**53  # integers up to this are exact as float64


class Values(NamedTuple):
    """The values of one factor."""

    present: np.ndarray  # of the rows with a value: float64, int64 or uint64 numbers, or texts (dtype object)
    known_N: np.ndarray  # True for the rows with a value
    notes: tuple[str, ...] = ()  # entries that were not read as they are written

    @property
    def are_texts(self) -> bool:
        return self.present.dtype == object


def read_values(column: Any, *, names: bool = False, numeric: bool = False) -> Values:
    """Return the values of a column of any type.

    `names`: texts are names of classes, so none is a missing value. `numeric`: texts that are numbers become numbers
    even if two of them are the same number.
    """
    series = _as_series(column)
    known_N = series.notna().to_numpy(dtype=bool)
    present = _as_array(series[known_N])
    if present.dtype != object:
        exact = _exact_integers(present) if present.dtype.kind in "iu" else None
        return _finite(present.astype(np.float64) if exact is None else exact, known_N)
    if (numbers := _numbers_of_objects(present)) is not None:
        return _finite(numbers, known_N)
    return _read_texts(np.array([str(value).strip() for value in present], dtype=object), known_N, names, numeric)


def _as_series(column: Any) -> pd.Series:
    """Return a column of which no value was converted; pandas would make floats of integers with missing values."""
    import pandas as pd

    if isinstance(column, pd.Series):
        return column.reset_index(drop=True)
    if isinstance(column, np.ndarray | pd.api.extensions.ExtensionArray):
        return pd.Series(column)
    objects = np.empty(len(column), dtype=object)
    objects[:] = list(column)
    return pd.Series(objects, dtype=object)


def _as_array(present: pd.Series) -> np.ndarray:
    """Return numbers and booleans as an array of their type, all other values as Python objects."""
    from pandas.api import types

    if types.is_complex_dtype(present):
        raise invalid("factors", "complex numbers", "real numbers or texts")
    if types.is_numeric_dtype(present):  # includes booleans
        return present.to_numpy(dtype=getattr(present.dtype, "numpy_dtype", present.dtype))
    return np.array([*present, None], dtype=object)[:-1]  # None, so that lists are not columns


def _exact_integers(integers: Any) -> np.ndarray | None:
    """Return integers as float64 if that is exact, else as int64 or uint64; None if they have more than 64 bits."""
    if not len(integers):
        return np.empty(0)
    low, high = int(min(integers)), int(max(integers))
    if low >= -_EXACT and high <= _EXACT:
        return np.array(integers, dtype=np.float64)
    if low >= -(2**63) and high < 2**63:
        return np.array(integers, dtype=np.int64)
    return np.array(integers, dtype=np.uint64) if low >= 0 and high < 2**64 else None


def _numbers_of_objects(present: np.ndarray) -> np.ndarray | None:
    """Return Python numbers as an array; None if a value is not a number or would change."""
    if not len(present):
        return np.empty(0)
    if all(isinstance(value, Integral | np.bool_) for value in present):
        return _exact_integers([int(value) for value in present])
    if not all(isinstance(value, Real | np.bool_) for value in present):
        return None
    numbers = np.array([float(value) for value in present])
    return numbers if len(set(numbers.tolist())) == len(set(present)) else None


def _finite(numbers: np.ndarray, known_N: np.ndarray) -> Values:
    """Return the finite numbers; infinite ones are missing."""
    finite = np.isfinite(numbers)
    note = f"{int((~finite).sum()):,} infinite numbers taken as missing"
    return Values(numbers[finite], _known_among(known_N, finite), () if finite.all() else (note,))


def _known_among(known_N: np.ndarray, kept: np.ndarray) -> np.ndarray:
    """Return the rows with a value, of which only those in `kept` (one entry per row with a value) stay known."""
    known_N = known_N.copy()
    known_N[known_N] = kept
    return known_N


def _read_texts(texts: np.ndarray, known_N: np.ndarray, names: bool, numeric: bool) -> Values:
    """Return texts as numbers if the column is numeric; each different text is examined once."""
    import pandas as pd

    position, distinct = pd.factorize(texts)
    values = np.asarray(distinct, dtype=object)
    kept = np.array([names or text not in MISSING for text in values], dtype=bool)
    found = _as_numbers([*values[kept]], names, numeric)
    if isinstance(found, _Numbers):
        kept[kept] = found.usable
        values = np.zeros(len(kept), dtype=found.numbers.dtype)
        values[kept] = found.numbers
    counts = dict(zip(distinct, np.bincount(position, minlength=len(kept)).tolist()))
    notes = [found] if isinstance(found, str) else []
    notes += _entries({text: counts[text] for text in distinct[~kept] if text}, "taken as missing")
    if not names and not isinstance(found, _Numbers):
        classes = {text: counts[text] for text in distinct[kept] if text.casefold() in MISSING_AMONG_NUMBERS}
        notes += _entries(classes, "a class; leave cells empty if the value is missing")
    known = kept[position]
    return Values(values[position[known]], _known_among(known_N, known), tuple(notes))


def _entries(counts: Mapping[str, int], what: str) -> list[str]:
    """Return a note about entries of a column, none if there are none."""
    number, shown = sum(counts.values()), ", ".join(map(repr, counts))
    one, many = f"1 entry {shown} is {what}", f"{number:,} entries {shown} are {what}"
    return [one if number == 1 else many] if number else []


class _Numbers(NamedTuple):
    """Texts as numbers."""

    usable: np.ndarray  # True for each text that is a finite number; the others are missing
    numbers: np.ndarray  # of the usable texts


def _as_numbers(texts: Sequence[str], names: bool, numeric: bool) -> _Numbers | str | None:
    """Return different texts as numbers if the column is numeric; None if it is not, or the reason if that is rare."""
    usable = np.array([bool(_NUMBER.fullmatch(text)) and np.isfinite(float(text)) for text in texts], dtype=bool)
    known = [text for text, is_number in zip(texts, usable) if is_number]
    others = {text.casefold() for text, is_number in zip(texts, usable) if not is_number}
    if not known or others - set(() if names else (*MISSING_AMONG_NUMBERS, *_INFINITE)):
        return None
    numbers = None
    if all(_INTEGER.fullmatch(text) for text in known):
        numbers = _exact_integers([int(text) for text in known])
        if numbers is None and not numeric:  # more than 64 bits
            return None
    if numbers is None:
        numbers = np.array([float(text) for text in known])
    if not numeric:
        if any(_LEADING_ZEROS.fullmatch(text) for text in known):
            return None
        if same := _same_number(known, numbers.tolist()):
            return f"{same[0]!r} and {same[1]!r} are the same number, so the values are texts"
    return _Numbers(usable, numbers)


def _same_number(texts: Sequence[str], numbers: Sequence[float]) -> tuple[str, str] | None:
    """Return two different texts that are the same number, if any; the sign of zero does not count."""
    seen: dict[float, str] = {}
    for text, number in zip(texts, numbers, strict=True):
        other = seen.setdefault(number, text)
        if other != text and (number or other.lstrip("+-") != text.lstrip("+-")):
            return other, text
    return None


_EARLIER_MISSING = (
    "", "#N/A", "#N/A N/A", "#NA", "-1.#IND", "-1.#QNAN", "-NaN", "-nan", "1.#IND", "1.#QNAN", "<NA>", "N/A", "NA",
    "NULL", "NaN", "None", "n/a", "nan", "null",
)  # fmt: skip


def read_earlier_values(column: Any, *, names: bool = False) -> Values:
    """Return the values by the earlier rules, for runs that were trained with these.

    Missing values were those of pandas, and a column was numeric if all its texts were, as float64.
    """
    import pandas as pd

    series = _as_series(column)
    if (numbers := _earlier_numbers(series)) is None:
        known_N = series.notna().to_numpy(dtype=bool)
        texts = [str(value).strip() if known else "" for value, known in zip(series, known_N)]
        missing = ("",) if names else _EARLIER_MISSING
        series = pd.Series([None if t in missing or t.lower() == "nan" else t for t in texts], dtype=object)
        numbers = _earlier_numbers(series)
    values = series.to_numpy(dtype=object) if numbers is None else numbers
    known_N = pd.notna(values)
    return Values(values[known_N], known_N)


def _earlier_numbers(series: pd.Series) -> np.ndarray | None:
    import pandas as pd

    numbers = pd.to_numeric(series, errors="coerce")
    if (numbers.isna() & series.notna()).any():
        return None
    floats = numbers.to_numpy(dtype=np.float64, na_value=np.nan)
    return np.where(np.isfinite(floats), floats, np.nan)
