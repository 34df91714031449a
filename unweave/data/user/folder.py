"""A folder of pictures of any size and kind as a data set, with an optional table of factors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from unweave.data.dataset import Dataset, SourceInfo
from unweave.data.user.arrays import Arrays
from unweave.data.user.factor_table import (
    FactorTable,
    MatchedRows,
    beside,
    factor_table,
    match_files,
    no_factors,
    read_table,
)
from unweave.data.user.image_io import Preprocessing, UnreadableImageError, decode_image
from unweave.data.user.pair_lists import GroupAssignment, read_groups, read_rows
from unweave.data.user.scan import FolderScan, list_files, read_folder
from unweave.errors import UserError, check_choice, check_integer

if TYPE_CHECKING:
    import pandas as pd


class Joined(NamedTuple):
    """The factors of the pictures, and how they were come by."""

    table: FactorTable
    left_out: dict[str, str]  # columns that are no factors, and why
    matched: MatchedRows | None = None  # None without a table
    grouped: GroupAssignment | None = None  # None without a list of groups


@dataclass(frozen=True)
class FolderInfo(SourceInfo):
    """A folder of images and the tables read with it."""

    path: Path
    preprocessing: Preprocessing
    scan: FolderScan
    factors: Path | None
    joined: Joined
    tables: list[str]  # tables in the folder that are not used

    @property
    def file_names(self) -> Sequence[str]:
        return self.scan.pictures

    @property
    def unreadable_files(self) -> Mapping[str, str]:
        return self.scan.bad

    @property
    def excluded_columns(self) -> Mapping[str, str]:
        return self.joined.left_out


def folder(
    path: str | Path | None = None,
    *,
    factors: str | Path | None = None,
    columns: Sequence[str] | None = None,
    kinds: Mapping[str, str] | None = None,
    groups: str | Path | None = None,
    size: int = 64,
    fit: str = "crop",
    channels: str = "auto",
    background: str = "white",
    white: int = 65535,
    resident: bool | None = None,
    fingerprint: str | None = None,
) -> Arrays:
    """The pictures below a folder, each brought to size x size pixels; with a table, their factors.

    `factors` is a .csv or .parquet; without one, sub-folders are the values of a factor `folder`. `columns` names the
    columns to use, `kinds` says which are "discrete" or "continuous". `groups` is a .csv with a file name and a group
    name a row: a factor `group`. `fit` is what happens to a picture that is not square: crop, pad or stretch.
    `fingerprint` is what the files must still be.
    """
    preprocessing = Preprocessing(check_integer("size", size, 8, 512), fit, channels, background, white).checked()
    root = _existing(path)
    source = None if factors is None else Path(factors).expanduser().resolve()
    rows = None if source is None else read_table(source)  # first, for reading pictures may take long
    lines = None if groups is None else read_rows("groups", groups)
    sets = lines and lines.path
    listed = list_files(root, skip=[file for file in (source, sets) if file])
    store, found = read_folder(root, listed, preprocessing)
    joined = _by_place(found) if rows is None else _by_table(found, rows, source, columns, kinds)
    joined = joined if lines is None else _with_groups(joined, read_groups(lines, found.pictures, found.bad))
    unused = [] if source else [name for name in found.bad if name.lower().endswith((".csv", ".parquet"))]
    now = f"{len(found.pictures)}-{found.digest}-{joined.table.digest()}"
    if fingerprint not in (None, now):
        raise UserError(_changed(root, source or sets, str(fingerprint), now))
    data = Arrays(store, joined.table, resident=resident, copy=False)
    data.name, data.source_info = "folder", FolderInfo(root, preprocessing, found, source, joined, unused)
    data.preprocessing = preprocessing._replace(channels="gray" if data.shape[0] == 1 else "rgb")
    given = {"columns": list(columns) if columns else None, "kinds": dict(kinds) if kinds else None}
    files = {"path": str(root), "factors": source and str(source), "groups": sets and str(sets)}
    options = {**files, **given, **preprocessing._asdict(), "resident": resident}
    data.options = {name: value for name, value in options.items() if value is not None} | {"fingerprint": now}
    return data


def read_image_like(data: Dataset, path: Path) -> np.ndarray | None:
    """A picture file prepared as those the set is made of [C, H, W] in 0..1; None if it is not made of pictures."""
    if data.preprocessing is None:
        return None
    try:
        return decode_image(path.read_bytes(), data.preprocessing)[0] / np.float32(255.0)
    except (UnreadableImageError, OSError) as error:
        raise UserError(f"image '{path}' cannot be read ({error}); give picture files such as .png or .jpg") from error


def _existing(path: str | Path | None) -> Path:
    if path is None:
        raise UserError("data 'folder' needs a path: folder(path='photos'); a folder of that name is './folder'")
    root = Path(path).expanduser()
    if not root.is_dir():
        what = "is a file" if root.exists() else "is not there"
        raise UserError(f"data '{path}' {what}; give a folder with pictures in it")
    return root.resolve()


def _changed(root: Path, source: Path | None, then: str, now: str) -> str:
    """What a run is told whose data are not what they were."""
    before, after = then.split("-"), now.split("-")
    what = f"pictures in '{root}'" if before[:2] != after[:2] else f"factors in '{source or root}'"
    counts = f" ({before[0]} then, {after[0]} now)" if before[0] != after[0] else ""
    return (
        f"the {what} are not those the run was made with{counts}; put them back. New pictures need none of them: "
        "unweave predict RUN FOLDER, or encode"
    )


def _by_place(found: FolderScan) -> Joined:
    """Sub-folders as a factor: the first folder in which the paths of the pictures differ."""
    import pandas as pd

    places = [name.split("/")[:-1] for name in found.pictures]
    shared = 0
    while len({tuple(place[: shared + 1]) for place in places}) == 1 and all(len(p) > shared for p in places):
        shared += 1
    names = [place[shared] if len(place) > shared else None for place in places]
    if not any(names):
        return Joined(no_factors(len(names)), {})
    return Joined(*factor_table({"folder": pd.Series(names, dtype=object)}))


def _with_groups(joined: Joined, grouped: GroupAssignment) -> Joined:
    if "group" in joined.table.names:
        raise UserError(
            f"groups '{grouped.path}': the table has a factor 'group' already; name the other ones in columns"
        )
    return joined._replace(table=beside(joined.table, grouped.table), grouped=grouped)


def _by_table(
    found: FolderScan,
    rows: pd.DataFrame,
    source: Path | None,
    columns: Sequence[str] | None,
    kinds: Mapping[str, str] | None,
) -> Joined:
    matched = match_files(rows, found.pictures, str(source), known=list(found.bad))
    frame = matched.frame
    for name in columns or ():
        check_choice("column", name, list(frame.columns), context="columns")
    chosen = frame[list(columns)] if columns else frame
    table, left_out = factor_table({str(n): chosen[n] for n in chosen}, kinds, keep=bool(columns))
    return Joined(table, left_out, matched)
