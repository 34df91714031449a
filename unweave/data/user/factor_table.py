"""Factors from columns: of a CSV or Parquet table, or of arrays.

A factor is discrete (texts, integers) or continuous (numbers with fractions). Values may be missing.

Shape letters: N observations, K factors.
"""

from __future__ import annotations

import hashlib
import io
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from unweave.data.ranges import Span, class_spans
from unweave.errors import UserError, check_choice, check_path, invalid

if TYPE_CHECKING:
    import pandas as pd

FACTOR_TYPES = ("discrete", "continuous")
_MAX_VALUES = 50  # a continuous factor with more different values is binned
_BINS = 20


class FactorTable(NamedTuple):
    """Factors of N observations, each as a class and as a number."""

    names: tuple[str, ...]
    factor_types: tuple[str, ...]
    values: tuple[tuple[float | str, ...], ...]  # the value of each class; of a binned factor, the median
    classes_NK: np.ndarray  # int64; -1 if missing
    numbers_NK: np.ndarray  # float64: the value if continuous, the class if discrete; nan if missing
    spans: tuple[tuple[Span, ...], ...]  # of a binned factor, the range of each class; of others ()

    def digest(self) -> str:
        """Return eight letters that change if the factors change."""
        text = repr((self.names, self.factor_types, self.values)).encode()
        return hashlib.blake2b(text + self.numbers_NK.tobytes(), digest_size=4).hexdigest()


def factor_table(
    columns: Mapping[str, Any],
    factor_types: Mapping[str, str] | None = None,
    *,
    select: Sequence[str] | None = None,
    keep: bool = False,
) -> tuple[FactorTable, dict[str, str]]:
    """Return the columns as factors, and the reason for each column that is left out (none if `keep` or `select`).

    `factor_types` overrides the type suggested by the values, `select` names the columns to use.
    """
    import pandas as pd

    for name in select or ():
        check_choice("column", name, columns, context="columns")
    columns, keep = ({name: columns[name] for name in select}, True) if select else (columns, keep)
    given = factor_types or {}
    for name, factor_type in given.items():
        check_choice("factor", name, columns, context="factor_types")
        check_choice("factor_types", factor_type, FACTOR_TYPES, context=f"factor {name!r}")
    factors, excluded = [], {}
    for name, values in columns.items():
        series = _clean(pd.Series(values).reset_index(drop=True))
        if not keep and (reason := _reason_to_exclude(series, requested=name in given)):
            excluded[str(name)] = reason
        else:
            factors.append(_factor(str(name), series, given.get(name)))
    count = len(next(iter(columns.values()))) if len(columns) else 0
    if not factors:
        return no_factors(count), excluded
    return concatenate(factors), excluded


def no_factors(count: int) -> FactorTable:
    """Return a table of `count` observations without factors."""
    return FactorTable((), (), (), np.empty((count, 0), np.int64), np.empty((count, 0), np.float64), ())


def concatenate(tables: Sequence[FactorTable]) -> FactorTable:
    """Return the factors of several tables of the same observations."""
    names, types, values, classes, numbers, spans = zip(*tables)
    classes_NK, numbers_NK = np.hstack(classes), np.hstack(numbers)
    return FactorTable(sum(names, ()), sum(types, ()), sum(values, ()), classes_NK, numbers_NK, sum(spans, ()))


def _clean(series: pd.Series) -> pd.Series:
    """Return float64 if all present values are numbers, else texts; missing values are nan or None."""
    import pandas as pd

    if (numbers := _to_numbers(series)) is not None:
        return numbers
    present = [str(value).strip() if known else "" for value, known in zip(series, series.notna())]
    texts = pd.Series([None if text.lower() in ("", "nan") else text for text in present], dtype=object)
    numbers = _to_numbers(texts)
    return texts if numbers is None else numbers


def _to_numbers(series: pd.Series) -> pd.Series | None:
    """Return the values as numbers; None if one of them is not a number."""
    import pandas as pd

    numbers = pd.to_numeric(series, errors="coerce")
    if (numbers.isna() & series.notna()).any():
        return None
    floats = numbers.to_numpy(dtype=np.float64, na_value=np.nan)
    return pd.Series(np.where(np.isfinite(floats), floats, np.nan))


def _reason_to_exclude(series: pd.Series, requested: bool) -> str:
    """Return why a column is not a factor; "" if it is one."""
    present = series.dropna()
    different = present.nunique()
    if not len(present):
        return "no values"
    if different == 1:
        return f"always {repr_value(present.iloc[0])}"
    if series.dtype == object and different == len(present) > 20 and not requested:
        return "a different text in every row"
    return ""


def _factor(name: str, series: pd.Series, factor_type: str | None) -> FactorTable:
    known = series.notna().to_numpy()
    present = series[known].to_numpy()
    if series.dtype == object:
        if factor_type == "continuous":
            text = f"texts such as {repr_value(present[0])}"
            raise invalid("factor_types", text, "numbers to be continuous", context=f"factor {name!r}")
        present, factor_type = present.astype(str), "discrete"
    factor_type = factor_type or ("discrete" if (present == np.round(present)).all() else "continuous")
    values, classes = np.unique(present, return_inverse=True)
    spans: tuple[Span, ...] = ()
    if factor_type == "continuous" and len(values) > _MAX_VALUES:
        values, classes = _bin(present)
        spans = class_spans(present, classes)
    classes_N1 = np.full((len(series), 1), -1, np.int64)
    classes_N1[known, 0] = classes
    numbers_N1 = np.full((len(series), 1), np.nan)
    numbers_N1[known, 0] = present if factor_type == "continuous" else classes
    return FactorTable((name,), (factor_type,), (tuple(values.tolist()),), classes_N1, numbers_N1, (spans,))


def _bin(numbers: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the median and the members of bins of about equal counts; one outlier would empty bins of equal width."""
    edges = np.unique(np.quantile(numbers, np.linspace(0, 1, _BINS + 1)[1:-1]))
    bins = np.searchsorted(edges, numbers, side="right")
    used, classes = np.unique(bins, return_inverse=True)
    return np.array([np.median(numbers[classes == c]) for c in range(len(used))]), classes


def repr_value(value: float | str) -> str:
    """Format a value for display."""
    return f"{value:.6g}" if isinstance(value, float | int | np.number) else f"'{value}'"


def read_table(path: str | Path) -> pd.DataFrame:
    """Read a .csv, .tsv or .parquet; texts stay texts, so that '007' matches 007.png."""
    path = check_path("factors", path)
    accepted = "a .csv or .parquet file that exists"
    suffix = path.suffix.lower()
    if not path.is_file() or suffix not in (".csv", ".tsv", ".txt", ".parquet", ".pq"):
        raise invalid("factors", str(path), accepted)
    try:
        frame = _read_parquet(path) if suffix in (".parquet", ".pq") else _read_text(path)
    except UserError:
        raise
    except Exception as error:
        reason = " ".join(str(error).split())
        message = f"factors '{path}' cannot be read as a table: {reason}"
        raise UserError(message, argument="factors", value=str(path), accepted=accepted) from error
    frame.columns = [str(name).strip() for name in frame.columns]
    context = f"factors '{path}'"
    if not len(frame):
        raise invalid("factors", "no rows", "one row for each image", context=context)
    if not frame.columns.is_unique:
        name = frame.columns[frame.columns.duplicated()][0]
        raise invalid("columns", f"{name!r} twice", "columns of different names", context=context)
    return frame


def _read_parquet(path: Path) -> pd.DataFrame:
    import pandas as pd

    try:
        return pd.read_parquet(path, engine="pyarrow")
    except ImportError:
        message = f"factors '{path}': Parquet requires the package pyarrow: pip install pyarrow, or pass a .csv"
        raise UserError(message, argument="factors", value=str(path), accepted="a .csv file") from None


def read_separated(path: Path) -> tuple[str, str]:
    """Return a text and its separator, in the variants that spreadsheets write: commas, semicolons or tabs; any BOM."""
    content = path.read_bytes()
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError:
        text = content.decode("latin-1")
    head = next((line for line in text.splitlines() if line.strip()), "")
    return text, max(",;\t", key=head.count)


def _read_text(path: Path) -> pd.DataFrame:
    import pandas as pd

    text, separator = read_separated(path)
    frame = pd.read_csv(io.StringIO(text), sep=separator, dtype=str, skipinitialspace=True)
    if separator == ";":  # with decimal commas
        number = r"\s*[+-]?\d+,\d+\s*"
        for name in frame:
            text = frame[name].dropna()
            if len(text) and (text.str.fullmatch(number) | text.str.fullmatch(r"\s*[+-]?\d+\s*")).all():
                frame[name] = frame[name].str.replace(",", ".")
    return frame
