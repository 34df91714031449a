"""Factors from columns: a CSV or Parquet table beside your pictures, or arrays beside your arrays.

A factor is discrete (texts, whole numbers) or continuous (numbers with fractions). Values may be missing.

Shape letters: N observations, K factors.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from unweave.data.ranges import Span, class_spans
from unweave.errors import UserError, check_choice

if TYPE_CHECKING:
    import pandas as pd

KINDS = ("discrete", "continuous")
_FILE_WORDS = re.compile(r"file|path|image|img|picture|photo|^(id|name|index)$", re.IGNORECASE)  # in a column's name
_PLAIN_NUMBER = re.compile(r"-?(0|[1-9]\d*)(\.\d+)?")
_FEW = 50  # up to so many different values of a continuous factor, each is a class of its own
_BINS = 20  # else it is cut into so many classes of about equal counts


class FactorTable(NamedTuple):
    """Factors of N observations, each as a class and as a number."""

    names: tuple[str, ...]
    factor_types: tuple[str, ...]
    values: tuple[tuple[float | str, ...], ...]  # what each class stands for; of a cut one, its median
    classes_NK: np.ndarray  # int64; -1 where missing
    numbers_NK: np.ndarray  # float64: a continuous factor's value, a discrete one's class; nan where missing
    spans: tuple[tuple[Span, ...], ...]  # of a cut one, where each class begins and ends; of another ()

    def digest(self) -> str:
        """Eight letters that change when the factors do."""
        said = repr((self.names, self.factor_types, self.values)).encode()
        return hashlib.blake2b(said + self.numbers_NK.tobytes(), digest_size=4).hexdigest()

    def missing(self) -> list[int]:
        """How many observations lack each factor."""
        return [int(count) for count in (self.classes_NK < 0).sum(0)]


class MatchedRows(NamedTuple):
    """A table's rows brought into the order of files."""

    frame: pd.DataFrame  # the other columns; all missing for a file without a row
    column: str  # the column that names the files
    files_without_row: list[str]  # files without a row
    unmatched_rows: list[str]  # what rows name that is no file
    duplicate_files: list[str]  # files with several rows: the first is used


# --- columns to factors --------------------------------------------------------------------------------------------


def factor_table(
    columns: Mapping[str, Any], kinds: Mapping[str, str] | None = None, *, keep: bool = False
) -> tuple[FactorTable, dict[str, str]]:
    """The columns as factors, and why some were left out (unless all are to be kept).

    `kinds` overrides what the values suggest.
    """
    import pandas as pd

    for name, kind in (kinds or {}).items():
        check_choice("factor", name, columns, context="kinds")
        check_choice(f"kinds: {name!r} as", kind, KINDS)
    made, left_out = [], {}
    for name, values in columns.items():
        series = _cleaned(pd.Series(values).reset_index(drop=True))
        if not keep and (reason := _useless(series, asked=name in (kinds or {}))):
            left_out[str(name)] = reason
        else:
            made.append((str(name), *_factor(str(name), series, (kinds or {}).get(name))))
    count = len(next(iter(columns.values()))) if len(columns) else 0
    return FactorTable(
        tuple(m[0] for m in made),
        tuple(m[1] for m in made),
        tuple(m[2] for m in made),
        np.stack([m[3] for m in made], axis=1) if made else np.empty((count, 0), np.int64),
        np.stack([m[4] for m in made], axis=1) if made else np.empty((count, 0), np.float64),
        tuple(m[5] for m in made),
    ), left_out


def no_factors(count: int) -> FactorTable:
    return FactorTable((), (), (), np.empty((count, 0), np.int64), np.empty((count, 0), np.float64), ())


def beside(left: FactorTable, right: FactorTable) -> FactorTable:
    """The factors of both, of the same observations."""
    classes_NK = np.concatenate([left.classes_NK, right.classes_NK], axis=1)
    numbers_NK = np.concatenate([left.numbers_NK, right.numbers_NK], axis=1)
    names, kinds, values = left.names + right.names, left.factor_types + right.factor_types, left.values + right.values
    return FactorTable(names, kinds, values, classes_NK, numbers_NK, left.spans + right.spans)


def _cleaned(series: pd.Series) -> pd.Series:
    """Numbers as float64 if all values present are numbers, else texts; what is missing is nan or None."""
    import pandas as pd

    if (numbers := _numbers(series)) is not None:
        return numbers
    present = [str(value).strip() if there else "" for value, there in zip(series, series.notna())]
    texts = pd.Series([None if text.lower() in ("", "nan") else text for text in present], dtype=object)
    numbers = _numbers(texts)
    return texts if numbers is None else numbers


def _numbers(series: pd.Series) -> pd.Series | None:
    """The values as numbers; None if one of them is none."""
    import pandas as pd

    numbers = pd.to_numeric(series, errors="coerce")
    if (numbers.isna() & series.notna()).any():
        return None
    floats = numbers.to_numpy(dtype=np.float64, na_value=np.nan)
    return pd.Series(np.where(np.isfinite(floats), floats, np.nan))


def _useless(series: pd.Series, asked: bool) -> str:
    """Why a column is no factor; empty if it is one."""
    present = series.dropna()
    different = present.nunique()
    if not len(present):
        return "no values"
    if different == 1:
        return f"always {repr_value(present.iloc[0])}"
    if series.dtype == object and different == len(present) > 20 and not asked:
        return "a different text in every row"
    return ""


def _factor(name: str, series: pd.Series, kind: str | None) -> tuple[str, tuple, np.ndarray, np.ndarray, tuple]:
    there = series.notna().to_numpy()
    present = series[there].to_numpy()
    if series.dtype == object:
        if kind == "continuous":
            raise UserError(f"kinds: {name!r} cannot be continuous; it holds texts such as {repr_value(present[0])}")
        present, kind = present.astype(str), "discrete"
    kind = kind or ("discrete" if (present == np.round(present)).all() else "continuous")
    values, classes = np.unique(present, return_inverse=True)
    spans: tuple[Span, ...] = ()
    if kind == "continuous" and len(values) > _FEW:
        values, classes = _cut(present)
        spans = class_spans(present, classes)
    classes_N = np.full(len(series), -1, np.int64)
    classes_N[there] = classes
    numbers_N = np.full(len(series), np.nan)
    numbers_N[there] = present if kind == "continuous" else classes
    return kind, tuple(values.tolist()), classes_N, numbers_N, spans


def _cut(numbers: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Classes of about equal counts: equal widths would leave most of them empty after one outlier."""
    edges = np.unique(np.quantile(numbers, np.linspace(0, 1, _BINS + 1)[1:-1]))
    bins = np.searchsorted(edges, numbers, side="right")
    used, classes = np.unique(bins, return_inverse=True)
    return np.array([np.median(numbers[classes == c]) for c in range(len(used))]), classes


def repr_value(value: float | str) -> str:
    """A value as people read it."""
    return f"{value:.6g}" if isinstance(value, float | int | np.number) else f"'{value}'"


# --- tables to columns ---------------------------------------------------------------------------------------------


def read_table(path: str | Path) -> pd.DataFrame:
    """The table in a .csv, .tsv or .parquet; texts stay texts, so that '007' still names 007.png."""
    path = Path(path).expanduser()
    if not path.is_file():
        problem = "is a folder" if path.is_dir() else "is not there"
        raise UserError(f"factors '{path}' {problem}; give a .csv or .parquet file")
    kind = path.suffix.lower()
    if kind not in (".csv", ".tsv", ".txt", ".parquet", ".pq"):
        raise UserError(f"factors '{path}' is of an unknown kind; give a .csv or .parquet file")
    try:
        frame = _read_parquet(path) if kind in (".parquet", ".pq") else _read_text(path)
    except UserError:
        raise
    except Exception as error:
        why = " ".join(str(error).split())
        raise UserError(f"factors '{path}' cannot be read as a table: {why}") from error
    frame.columns = [str(name).strip() for name in frame.columns]
    if not len(frame):
        raise UserError(f"factors '{path}' has no rows; give one for each picture")
    if not frame.columns.is_unique:
        name = frame.columns[frame.columns.duplicated()][0]
        raise UserError(f"factors '{path}' has two columns called {name!r}; give each a name of its own")
    return frame


def _read_parquet(path: Path) -> pd.DataFrame:
    import pandas as pd

    try:
        import pyarrow  # noqa: F401
    except ImportError:
        raise UserError(
            f"factors '{path}': Parquet needs the package pyarrow, which is not installed; "
            "use pip install pyarrow, or give a .csv"
        ) from None
    return pd.read_parquet(path, engine="pyarrow")


def _read_text(path: Path) -> pd.DataFrame:
    """Whatever spreadsheets write: commas, semicolons (then decimals have commas) or tabs, with or without a mark."""
    import pandas as pd

    content = path.read_bytes()
    encoding = "utf-8-sig"
    try:
        head = content.decode(encoding).partition("\n")[0]
    except UnicodeDecodeError:
        encoding = "latin-1"
        head = content.decode(encoding).partition("\n")[0]
    separator = max(",;\t", key=head.count)
    frame = pd.read_csv(path, sep=separator, dtype=str, encoding=encoding, skipinitialspace=True)
    if separator == ";":
        number = r"\s*[+-]?\d+,\d+\s*"
        for name in frame:
            text = frame[name].dropna()
            if len(text) and (text.str.fullmatch(number) | text.str.fullmatch(r"\s*[+-]?\d+\s*")).all():
                frame[name] = frame[name].str.replace(",", ".")
    return frame


# --- rows to files -------------------------------------------------------------------------------------------------


def match_files(frame: pd.DataFrame, files: Sequence[str], table: str | Path, known: Sequence[str] = ()) -> MatchedRows:
    """The rows in the order of `files` (paths inside the folder). `known` names files that gave no picture."""
    finder = file_finder(files)
    column, found = _file_column(frame, files, finder, table)
    if Path(column).suffix and find_file(column, finder) is not None:
        raise UserError(
            f"factors '{table}' has no line with the names of its columns: the first one names the picture "
            f"'{column}'; put one above it, such as file,kind"
        )
    rows, duplicate_files = np.full(len(files), -1, np.int64), []
    spoilt, unmatched_rows = file_finder(known), []
    for row, file in enumerate(found):
        if file is None:
            name = frame[column].iloc[row]
            if not isinstance(name, str) or find_file(name, spoilt) is None:
                unmatched_rows.append(str(name) if isinstance(name, str) else f"(row {row + 2} is blank)")
        elif rows[file] >= 0:
            duplicate_files.append(files[file])
        else:
            rows[file] = row
    others = frame.drop(columns=column).reset_index(drop=True).reindex(rows).reset_index(drop=True)
    return MatchedRows(
        others,
        column,
        [f for f, row in zip(files, rows) if row < 0],
        unmatched_rows,
        list(dict.fromkeys(duplicate_files)),
    )


def file_finder(files: Sequence[str]) -> dict[str, int | None]:
    """What may stand for each file: its path, its name, either without ending. What fits two files stands for None."""
    exact = {file: number for number, file in enumerate(files)}
    loose: dict[str, int | None] = {}
    for number, file in enumerate(files):
        path = Path(file)
        for key in {path.with_suffix("").as_posix(), path.name, path.stem, file.casefold(), path.name.casefold()}:
            loose[key] = number if loose.get(key, number) == number else None
    return {**loose, **exact}


def find_file(name: str, finder: Mapping[str, int | None]) -> int | None:
    """The file a table's entry means: the longest end of the path that is known."""
    parts = [part for part in name.strip().replace("\\", "/").split("/") if part not in ("", ".")]
    for start in range(len(parts)):
        tail = "/".join(parts[start:])
        for key in (tail, tail.casefold()):
            if key in finder:
                return finder[key]
    return None


def _file_column(
    frame: pd.DataFrame, files: Sequence[str], finder: Mapping[str, int | None], table: str | Path
) -> tuple[str, list[int | None]]:
    """The column whose entries name the most files; of equals the one whose name says so.

    Of a long table first some rows are asked, and only if these know of no file, all.
    """
    for rows in (frame.iloc[:: max(1, len(frame) // 1000)], frame):
        known = {name: _found(rows, name, finder) for name in map(str, frame)}
        scores = {name: (len(set(found) - {None}), bool(_FILE_WORDS.search(name))) for name, found in known.items()}
        best = max(scores, key=scores.__getitem__)
        if scores[best][0]:
            return best, _found(frame, best, finder)
    column = next((name for name in known if _FILE_WORDS.search(name)), str(frame.columns[0]))
    raise UserError(
        f"factors '{table}': no row names any of the {len(files)} pictures; "
        f"a row has {column}={str(frame[column].iloc[0])!r}, a picture is called {files[0]!r}"
    )


def _found(frame: pd.DataFrame, column: str, finder: Mapping[str, int | None]) -> list[int | None]:
    """The file each entry of a column means.

    A plain number counts only where it is meant for a name: 3 may well be a value, though there is a 3.png.
    """
    meant = bool(_FILE_WORDS.search(column))
    entries = [str(entry) if there else "" for entry, there in zip(frame[column], frame[column].notna())]
    return [find_file(e, finder) if meant or not _PLAIN_NUMBER.fullmatch(e) else None for e in entries]
