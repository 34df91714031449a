"""Description of a folder of images: what the files are, what was done to them, and where their factors come from."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from unweave.data.dataset import SourceInfo
from unweave.data.user.factor_table import FactorTable
from unweave.data.user.image_io import Preprocessing
from unweave.data.user.notes import STORED_IN_COLOUR, conversion_notes
from unweave.data.user.pair_lists import GroupAssignment
from unweave.data.user.row_matching import MatchedRows
from unweave.data.user.scan import FolderScan
from unweave.data.user.wording import count_text, counts_text, display_path, first_names, renamed_note

_MODES = {
    "RGB": "colour", "L": "grey", "P": "palette", "1": "black and white", "RGBA": "colour with transparency",
    "LA": "grey with transparency", "PA": "palette with transparency", "I": "grey of 16 bits",
    "I;16": "grey of 16 bits", "I;16B": "grey of 16 bits", "I;16L": "grey of 16 bits", "F": "grey in floats",
}  # fmt: skip
_MAX_SIZES = 5  # image sizes that are listed one by one


class FolderFactors(NamedTuple):
    """The factors of the images of a folder and where they come from."""

    table: FactorTable
    excluded: dict[str, str]  # columns that are not factors, with the reason
    matched: MatchedRows | None = None  # None without a table
    groups: GroupAssignment | None = None  # None without a list of groups


def folder_info(
    path: Path, preprocessing: Preprocessing, scan: FolderScan, factors: FolderFactors, factors_path: Path | None
) -> SourceInfo:
    """Describe a folder of images and the tables read with it."""
    matched, groups = factors.matched, factors.groups
    row_notes, row_warnings, group_warnings = _unused_table(path, scan.unreadable), [], []
    if matched:
        row_notes = _listed(matched.files_without_row, "image has", "images have", "no row")
        row_warnings = _row_warnings(matched, factors_path)
    if groups:
        problem = "only one image and cannot be trained on"
        group_warnings = _listed(groups.singleton_groups, "group has", "groups have", problem)
        group_warnings += [renamed_note(groups.path.name, groups.renamed)] if groups.renamed else []
    return SourceInfo(
        title=display_path(path),
        details=_file_details(scan),
        notes=_conversion_notes(preprocessing, scan),
        file_names=scan.files,
        unreadable_files=scan.unreadable,
        factor_source=_factor_source(factors, factors_path),
        excluded_columns=factors.excluded,
        name_notes=[f"column {matched.column!r} names the images"] if matched else [],
        row_notes=[*row_notes, *row_warnings],
        row_warnings=row_warnings,
        group_notes=[*(_group_notes(groups) if groups else []), *group_warnings],
        group_warnings=group_warnings,
    )


def _row_warnings(matched: MatchedRows, table: Path | None) -> list[str]:
    """Return one line for each kind of row that gives no image its values."""
    found = [line for why, rows in matched.unused_rows.items() for line in _listed(rows, "row names", "rows name", why)]
    problem = "an image that another row names by its path"
    found += _listed(matched.less_exact_rows, "row names", "rows name", problem)
    files = list(dict.fromkeys(matched.duplicates.files))
    found += _listed(files, "image has", "images have", "several rows, of which the first is used")
    return found + ([renamed_note(table.name, matched.renamed)] if table and matched.renamed else [])


def _file_details(scan: FolderScan) -> list[tuple[str, ...]]:
    modes: Counter[str] = Counter()
    for mode, count in scan.modes.items():
        modes[_MODES.get(mode, mode)] += count
    files = count_text(len(scan.files) + len(scan.unreadable), "file", "files")
    return [
        ("images", f"{len(scan.files):,} in {files}"),
        ("format", counts_text(scan.formats)),
        ("type", counts_text(modes)),
        ("size", _sizes_text(scan.sizes)),
    ]


def _conversion_notes(preprocessing: Preprocessing, scan: FolderScan) -> list[str]:
    notes = conversion_notes(preprocessing, scan.traits, scan.max_16_bit)
    if scan.gray and preprocessing.channels == "auto" and scan.modes.get("RGB"):
        notes.append(STORED_IN_COLOUR)
    if preprocessing.channels == "gray" and not scan.gray:
        notes.append("colours are converted to grey, as requested")
    return notes


def _factor_source(factors: FolderFactors, factors_path: Path | None) -> str:
    files = [display_path(file) for file in (factors_path, factors.groups and factors.groups.path) if file]
    if not factors_path and len(factors.table.names) > bool(factors.groups):
        files.insert(0, "the names of the sub-folders")
    return " and ".join(files)


def _unused_table(path: Path, names: Iterable[str]) -> list[str]:
    unused = [name for name in names if name.lower().endswith((".csv", ".parquet"))]
    use = "to use it: --factors {table} (or --groups, --pairs)"
    return [f"{name} is in the folder; {use.format(table=display_path(path / name))}" for name in unused[:1]]


def _group_notes(groups: GroupAssignment) -> list[str]:
    ungrouped = int((groups.table.classes_NK < 0).sum())
    notes = [f"row 1 of {groups.path.name} is used as a header"] if groups.header else []
    return notes + [f"{count_text(ungrouped, 'image is', 'images are')} in no group"] * bool(ungrouped)


def _listed(names: Sequence[str], one: str, many: str, problem: str) -> list[str]:
    return [f"{count_text(len(names), one, many)} {problem}: {first_names(names)}"] if names else []


def _sizes_text(sizes: Mapping[str, int]) -> str:
    if len(sizes) == 1:
        return f"all {next(iter(sizes))}"
    if len(sizes) <= _MAX_SIZES:
        return ", ".join(f"{count:,} of {size}" for size, count in sizes.items())
    sides = np.array([[int(side) for side in size.split(" x ")] for size in sizes])
    (low_w, low_h), (high_w, high_h) = sides.min(0), sides.max(0)
    return f"{len(sizes):,} different sizes, {low_w} to {high_w} wide and {low_h} to {high_h} high"
