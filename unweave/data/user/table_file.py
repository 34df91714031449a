"""Read tables from files: .csv and .tsv as spreadsheets write them, and Parquet. Entries of text files stay texts."""

from __future__ import annotations

import io
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

from unweave.data.user.factor_table import check_column_count
from unweave.data.user.factor_values import MISSING, MISSING_AMONG_NUMBERS
from unweave.errors import UserError, check_path, invalid

if TYPE_CHECKING:
    import pandas as pd


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
        import pyarrow  # noqa: F401
        from pyarrow.parquet import read_schema

        check_column_count(len(read_schema(path)), "columns", f"factors '{path}'")
        return pd.read_parquet(path, engine="pyarrow", dtype_backend="numpy_nullable")  # integers stay integers
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
    """Return the entries of a text file as texts, also those that pandas would take as missing."""
    import pandas as pd

    text, separator = read_separated(path)
    context = f"factors '{path}'"
    options: dict[str, Any] = dict(sep=separator, dtype=str, keep_default_na=False, na_filter=False)
    head = next((line for line in text.splitlines() if line.strip()), "")
    check_column_count(head.count(separator) + 1, "columns", context)
    with warnings.catch_warnings():
        warnings.simplefilter("error", pd.errors.ParserWarning)
        try:
            frame = pd.read_csv(io.StringIO(text), index_col=False, skipinitialspace=True, **options)
        except pd.errors.ParserWarning:
            accepted = "a table whose rows have as many entries as its header"
            raise invalid("factors", "rows with more entries", accepted, context=context) from None
    names = pd.read_csv(io.StringIO(text), header=None, nrows=1, skipinitialspace=True, **options).iloc[0]
    frame.columns = [given.strip() or name for given, name in zip(names, frame.columns, strict=True)]
    if separator == ";":
        frame = frame.apply(_decimal_points)
    return frame


def _decimal_points(texts: pd.Series) -> pd.Series:
    """Return a column of numbers with decimal commas with decimal points; other columns unchanged."""
    known = texts[~texts.str.strip().isin(MISSING) & ~texts.str.strip().str.casefold().isin(MISSING_AMONG_NUMBERS)]
    number = r"\s*[+-]?(\d+|\d*,\d+)([eE][+-]?\d+)?\s*"
    if len(known) and known.str.fullmatch(number).all():
        return texts.str.replace(",", ".", regex=False)
    return texts
