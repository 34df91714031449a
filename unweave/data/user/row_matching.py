"""Match the rows of a table to image files by the file names in one of its columns."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from unweave.data.user.file_names import AMBIGUOUS, ELSEWHERE, UNKNOWN, FileNames, Match
from unweave.errors import UserError

if TYPE_CHECKING:
    import pandas as pd

_FILE_WORDS = re.compile(r"file|path|image|img|picture|photo|^(id|name|index)$", re.IGNORECASE)  # in a column's name
_NUMBER = re.compile(r"-?(0|[1-9]\d*)(\.\d+)?")
_SEARCHED_CELLS = 200_000  # of a table, in the search for the column of file names
_MOST_CELLS = 20_000_000  # in the second search


class MatchedRows(NamedTuple):
    """The rows of a table in the order of the files."""

    frame: pd.DataFrame  # the other columns; all values are missing for a file without a row
    column: str  # the column of file names
    files_without_row: list[str]
    unused_rows: dict[str, list[str]]  # entries of rows that do not name an image, by the reason
    less_exact_rows: list[str]  # entries of rows for an image that another row names by its path
    duplicates: Duplicates
    renamed: str = ""  # the folder that the rows name, if it is not the folder that was read


class Duplicates(NamedTuple):
    """Further rows for the same images, which name them in the same way."""

    frame: pd.DataFrame  # the whole table
    files: list[str]
    used: list[int]  # rows
    others: list[int]

    def check(self, columns: Sequence[str], table: str) -> None:
        """Raise if two rows for one image differ in one of these columns: it is unknown which of them is right."""
        for name in columns:
            values = self.frame[name].astype(object).where(self.frame[name].notna(), "").astype(str).str.strip()
            one, other = (values.iloc[rows].to_numpy() for rows in (self.used, self.others))
            if (differ := np.flatnonzero(one != other)).size:
                k = int(differ[0])
                rows = f"rows {self.used[k] + 2} and {self.others[k] + 2}"
                problem = f"{rows} give image {self.files[k]!r} {name} = {one[k]!r} and {other[k]!r}"
                accepted = "one row per image, or rows with equal values"
                message = f"factors '{table}': {problem}; give {accepted}"
                raise UserError(message, argument="factors", value=table, accepted=accepted)


def match_files(
    frame: pd.DataFrame,
    files: Sequence[str],
    table: str | Path,
    unreadable: Sequence[str] = (),
    root: Path | None = None,
) -> MatchedRows:
    """Return the rows in the order of `files` (paths inside the folder); rows of `unreadable` files are ignored.

    Of several rows for one image, one with its path comes first, then the first one.
    """
    names = FileNames(files, unreadable, root)
    column, matches = _find_file_column(frame, files, names, table)
    if Path(column).suffix and names.match(column).image is not None:
        accepted = "a header with the names of the columns, such as file,shape"
        message = f"factors '{table}' must begin with {accepted}; the first line names the image {column!r}"
        raise UserError(message, argument="factors", value=str(table), accepted=accepted)
    entries, rows = _entries(frame[column]), np.full(len(files), -1, np.int64)
    unused: dict[str, list[str]] = {reason: [] for reason in (UNKNOWN, AMBIGUOUS, ELSEWHERE)}
    for exact in (True, False):
        for row, match in enumerate(matches):
            if match.exact == exact and match.image is not None and rows[match.image] < 0:
                rows[match.image] = row
    for entry, (row, match) in zip(entries, enumerate(matches), strict=True):
        if match.problem:
            unused[match.problem].append(entry or f"(row {row + 2} is blank)")
    less_exact, duplicates = _further_rows(frame, files, matches, rows, entries)
    others = frame.drop(columns=column).reset_index(drop=True).reindex(rows).reset_index(drop=True)
    without_row = [file for file, row in zip(files, rows) if row < 0]
    return MatchedRows(others, column, without_row, unused, less_exact, duplicates, names.renamed(matches))


def _further_rows(
    frame: pd.DataFrame, files: Sequence[str], matches: Sequence[Match], rows: np.ndarray, entries: Sequence[str]
) -> tuple[list[str], Duplicates]:
    """Return the entries of rows that name an image less exactly than the row used, and the other further rows."""
    less_exact, found = [], Duplicates(frame, [], [], [])
    for row, match in enumerate(matches):
        if match.image is None or (used := int(rows[match.image])) == row:
            continue
        if matches[used].exact and not match.exact:
            less_exact.append(entries[row])
        else:
            found.files.append(files[match.image])
            found.used.append(used)
            found.others.append(row)
    return less_exact, found


def _find_file_column(
    frame: pd.DataFrame, files: Sequence[str], names: FileNames, table: str | Path
) -> tuple[str, list[Match]]:
    """Return the column that names the most files, and what its rows name; ties go to a name such as "image".

    A sample of the rows decides. If it names no file, all rows are searched, of a very large table only in the columns
    with such a name.
    """
    titled = [name for name in map(str, frame) if _FILE_WORDS.search(name)]
    step = max(1, len(frame) // max(10, min(1000, _SEARCHED_CELLS // len(frame.columns))))
    everywhere = [str(name) for name in frame] if frame.size < _MOST_CELLS else titled
    best = (titled or [str(frame.columns[0])])[0]
    for rows, searched in ((frame.iloc[::step], map(str, frame)), (frame, everywhere)):
        found = {name: {m.image for m in _match_column(rows, name, names)} - {None} for name in searched}
        scores = {name: (len(images), name in titled) for name, images in found.items() if images}
        if scores:
            best = max(scores, key=scores.__getitem__)
            break
    matches = names.agreeing(_match_column(frame, best, names))
    if all(match.image is None for match in matches):
        raise _no_match(frame[best], files, table, any(match.problem == ELSEWHERE for match in matches))
    return best, matches


def _no_match(column: pd.Series, files: Sequence[str], table: str | Path, elsewhere: bool) -> UserError:
    first = next(filter(None, _entries(column)), "")
    folders = "; rows must name images in the folder that is read" if elsewhere else ""
    message = (
        f"factors '{table}': no row names any of the {len(files)} images; "
        f"a row has {column.name}={first!r}, an image is called {files[0]!r}{folders}"
    )
    return UserError(message, argument="factors", value=str(table), accepted="a table with a column of file names")


def _match_column(frame: pd.DataFrame, column: str, names: FileNames) -> list[Match]:
    """Return the file named by each entry of a column.

    A number counts as a name only if the column is called like one: 3 may be a value although there is a 3.png.
    """
    numbers, unknown = bool(_FILE_WORDS.search(column)), Match(None, UNKNOWN)
    entries = _entries(frame[column])
    return [names.match(entry) if numbers or not _NUMBER.fullmatch(entry) else unknown for entry in entries]


def _entries(column: pd.Series) -> list[str]:
    """Return the entries as texts; "" if missing."""
    return [str(entry).strip() if known else "" for entry, known in zip(column, column.notna())]
