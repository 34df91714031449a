"""Match the rows of a table to image files by the file names in one of its columns."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from unweave.errors import UserError

if TYPE_CHECKING:
    import pandas as pd

_FILE_WORDS = re.compile(r"file|path|image|img|picture|photo|^(id|name|index)$", re.IGNORECASE)  # in a column's name
_NUMBER = re.compile(r"-?(0|[1-9]\d*)(\.\d+)?")


class MatchedRows(NamedTuple):
    """The rows of a table in the order of the files."""

    frame: pd.DataFrame  # the other columns; all values are missing for a file without a row
    column: str  # the column of file names
    files_without_row: list[str]
    unmatched_rows: list[str]  # entries that do not name a file
    duplicate_files: list[str]  # files with several rows, of which the first is used


def match_files(
    frame: pd.DataFrame, files: Sequence[str], table: str | Path, unreadable: Sequence[str] = ()
) -> MatchedRows:
    """Return the rows in the order of `files` (paths inside the folder); rows of `unreadable` files are ignored."""
    index = file_finder(files)
    column, matches = _find_file_column(frame, files, index, table)
    if Path(column).suffix and find_file(column, index) is not None:
        accepted = "a header with the names of the columns, such as file,shape"
        message = f"factors '{table}' must begin with {accepted}; the first line names the image {column!r}"
        raise UserError(message, argument="factors", value=str(table), accepted=accepted)
    rows, duplicate_files = np.full(len(files), -1, np.int64), []
    unreadable_index, unmatched_rows = file_finder(unreadable), []
    for row, file in enumerate(matches):
        if file is None:
            name = frame[column].iloc[row]
            if not isinstance(name, str) or find_file(name, unreadable_index) is None:
                unmatched_rows.append(str(name) if isinstance(name, str) else f"(row {row + 2} is blank)")
        elif rows[file] >= 0:
            duplicate_files.append(files[file])
        else:
            rows[file] = row
    others = frame.drop(columns=column).reset_index(drop=True).reindex(rows).reset_index(drop=True)
    without_row = [file for file, row in zip(files, rows) if row < 0]
    return MatchedRows(others, column, without_row, unmatched_rows, list(dict.fromkeys(duplicate_files)))


def file_finder(files: Sequence[str]) -> dict[str, int | None]:
    """Return the position of each file by its path and name, with or without its suffix; None if ambiguous."""
    exact = {file: number for number, file in enumerate(files)}
    loose: dict[str, int | None] = {}
    for number, file in enumerate(files):
        path = Path(file)
        for key in {path.with_suffix("").as_posix(), path.name, path.stem, file.casefold(), path.name.casefold()}:
            loose[key] = number if loose.get(key, number) == number else None
    return {**loose, **exact}


def find_file(name: str, index: Mapping[str, int | None]) -> int | None:
    """Return the position of the file with the longest matching end of its path."""
    parts = [part for part in name.strip().replace("\\", "/").split("/") if part not in ("", ".")]
    for start in range(len(parts)):
        tail = "/".join(parts[start:])
        for key in (tail, tail.casefold()):
            if key in index:
                return index[key]
    return None


def _find_file_column(
    frame: pd.DataFrame, files: Sequence[str], index: Mapping[str, int | None], table: str | Path
) -> tuple[str, list[int | None]]:
    """Return the column that names the most files, and the file of each row; ties go to a name such as "image".

    A sample of about 1,000 rows decides; all rows are searched only if the sample names no file.
    """
    for rows in (frame.iloc[:: max(1, len(frame) // 1000)], frame):
        matches = {name: _match_column(rows, name, index) for name in map(str, frame)}
        scores = {name: (len(set(found) - {None}), bool(_FILE_WORDS.search(name))) for name, found in matches.items()}
        best = max(scores, key=scores.__getitem__)
        if scores[best][0]:
            return best, _match_column(frame, best, index)
    column = next((name for name in matches if _FILE_WORDS.search(name)), str(frame.columns[0]))
    message = (
        f"factors '{table}': no row names any of the {len(files)} images; "
        f"a row has {column}={str(frame[column].iloc[0])!r}, an image is called {files[0]!r}"
    )
    raise UserError(message, argument="factors", value=str(table), accepted="a table with a column of file names")


def _match_column(frame: pd.DataFrame, column: str, index: Mapping[str, int | None]) -> list[int | None]:
    """Return the file named by each entry of a column.

    A number counts as a name only if the column is called like one: 3 may be a value although there is a 3.png.
    """
    names_files = bool(_FILE_WORDS.search(column))
    entries = [str(entry) if known else "" for entry, known in zip(frame[column], frame[column].notna())]
    return [find_file(e, index) if names_files or not _NUMBER.fullmatch(e) else None for e in entries]
