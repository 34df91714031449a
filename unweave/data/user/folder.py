"""A data set of a folder of images of any size and format, with an optional table of factors."""

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from unweave.data.user.arrays import Arrays, check_fingerprint
from unweave.data.user.factor_table import concatenate, factor_table, no_factors, read_as_stored
from unweave.data.user.folder_info import FolderFactors, folder_info
from unweave.data.user.image_io import Preprocessing
from unweave.data.user.pair_lists import GroupAssignment, read_groups, read_rows
from unweave.data.user.row_matching import MatchedRows, match_files
from unweave.data.user.scan import FolderScan, list_files, read_folder
from unweave.data.user.table_file import read_table
from unweave.errors import UserError, check_integer, check_path, invalid


def folder(
    path: str | Path | None = None,
    *,
    factors: str | Path | None = None,
    columns: Sequence[str] | None = None,
    factor_types: Mapping[str, str] | None = None,
    groups: str | Path | None = None,
    size: int = 64,
    fit: str = "crop",
    channels: str = "auto",
    background: str = "white",
    white: int = 65535,
    resident: bool | None = None,
    fingerprint: str | None = None,
) -> Arrays:
    """Open the images below a folder, each converted to size x size pixels, and their factors if there is a table.

    `factors` is a .csv or .parquet; without one, sub-folders are the values of a factor `folder`. `columns` names the
    columns to use, `factor_types` gives "discrete" or "continuous" for some of them. `groups` is a .csv with a file
    name and a group name per row, which become a factor `group`. `fit` is crop, pad or stretch, for images that are
    not square. `fingerprint` identifies the content that a run of an older version was trained on.
    """
    preprocessing = Preprocessing(check_integer("size", size, 8, 512), fit, channels, background, white).checked()
    root = _existing(path)
    factors_path = None if factors is None else check_path("factors", factors)
    frame = None if factors_path is None else read_table(factors_path)  # checked first, since images take long
    group_rows = None if groups is None else read_rows("groups", groups)
    groups_path = group_rows and group_rows.path
    pixels, scan = read_folder(root, list_files(root, [p for p in (factors_path, groups_path) if p]), preprocessing)
    matched = None if frame is None else match_files(frame, scan.files, str(factors_path), list(scan.unreadable), root)
    found = None if group_rows is None else read_groups(group_rows, scan.files, scan.unreadable, root)
    read_factors = partial(_read_factors, scan, matched, found, columns, factor_types)
    folder_factors = read_as_stored(read_factors, fingerprint, root)
    if matched is not None and fingerprint is None:  # older versions used the first row
        used = [name for name in folder_factors.table.names if name in matched.frame]
        matched.duplicates.check(used, str(factors_path))
    current = f"{len(scan.files)}-{scan.digest}-{folder_factors.table.digest()}"
    hint = "; a trained model reads new images without them: unweave predict RUN FOLDER, or encode"
    check_fingerprint(root, factors_path or groups_path or root, fingerprint, current, hint)
    data = Arrays(pixels, folder_factors.table, resident=resident, copy=False)
    data.name, data.source_info = "folder", folder_info(root, preprocessing, scan, folder_factors, factors_path)
    data.preprocessing = preprocessing._replace(channels="gray" if data.shape[0] == 1 else "rgb")
    given = dict(columns=list(columns or ()) or None, factor_types=dict(factor_types or {}) or None)
    paths = dict(path=str(root), factors=factors_path and str(factors_path), groups=groups_path and str(groups_path))
    options = {**paths, **given, **preprocessing._asdict(), "resident": resident, "fingerprint": fingerprint}
    data.options = {name: value for name, value in options.items() if value is not None}
    return data


def _existing(path: str | Path | None) -> Path:
    if path is None:
        message = "data 'folder' requires a path: folder(path='photos'); a folder of that name is './folder'"
        raise UserError(message, argument="path", accepted="a folder of images")
    root = check_path("path", path)
    if not root.is_dir():
        raise invalid("data", str(path), "a folder of images that exists")
    return root


def _read_factors(
    scan: FolderScan,
    matched: MatchedRows | None,
    groups: GroupAssignment | None,
    columns: Sequence[str] | None,
    factor_types: Mapping[str, str] | None,
    earlier: bool,
) -> FolderFactors:
    """Return the factors of the table, or else of the sub-folders, and of the groups."""
    series = _subfolder_names(scan) if matched is None else {str(name): matched.frame[name] for name in matched.frame}
    names = ("folder",) if matched is None else ()
    table, excluded = factor_table(series, factor_types, select=columns, names=names, earlier=earlier)
    factors = FolderFactors(table if series else no_factors(len(scan.files)), excluded, matched)
    return factors if groups is None else _with_groups(factors, groups)


def _subfolder_names(scan: FolderScan) -> dict[str, Any]:
    """Return as a column the first level of sub-folders in which the paths of the images differ."""
    parents = [name.split("/")[:-1] for name in scan.files]
    common = 0
    while len({tuple(p[: common + 1]) for p in parents}) == 1 and all(len(p) > common for p in parents):
        common += 1
    names = [p[common] if len(p) > common else None for p in parents]
    return {"folder": names} if any(names) else {}


def _with_groups(factors: FolderFactors, groups: GroupAssignment) -> FolderFactors:
    if "group" in factors.table.names:
        hint = "select other columns of factors with columns="
        raise invalid("groups", str(groups.path), "given with a table without a factor 'group'", hint=hint)
    return factors._replace(table=concatenate([factors.table, groups.table]), groups=groups)
