"""What a data set is and what was done to make it, in words: for `unweave data inspect`, and in short for `train`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch

from unweave.data.dataset import Dataset
from unweave.data.user.array_file import ArrayInfo
from unweave.data.user.factor_table import repr_value
from unweave.data.user.folder import FolderInfo
from unweave.data.user.image_io import Preprocessing

_MODES = {
    "RGB": "colour", "L": "grey", "P": "palette", "1": "black and white", "RGBA": "colour with transparency",
    "LA": "grey with transparency", "PA": "palette with transparency", "I": "grey of 16 bits",
    "I;16": "grey of 16 bits", "I;16B": "grey of 16 bits", "I;16L": "grey of 16 bits", "F": "grey in floats",
}  # fmt: skip
_FITS = {
    "crop": "the middle is kept; fit=pad keeps all of them with margins, fit=stretch squeezes them",
    "pad": "they get margins in {background}; fit=crop keeps the middle only, fit=stretch squeezes them",
    "stretch": "they are squeezed; fit=crop keeps the middle, fit=pad adds margins",
}
_FEW_SIZES = 5


class Section(NamedTuple):
    head: str
    rows: Sequence[tuple[str, ...]]


def describe(data: Dataset) -> list[Section]:
    """Everything there is to tell, section by section."""
    about = data.source_info
    if isinstance(about, FolderInfo):
        return [_files(about), _seen(data, _care(about)), _factors(data, about), *_skipped(about)]
    if isinstance(about, ArrayInfo):
        head = Section("in memory" if about.path is None else _place(about.path), [("form", about.form)])
        return [head, _seen(data, about.notes), _factors(data, about)]
    return [_seen(data, ()), _factors(data, None)]


def _place(path: Path) -> str:
    """The path as one would type it from here."""
    here = Path.cwd()
    return str(path.relative_to(here)) if path != here and path.is_relative_to(here) else str(path)


def printable(name: str) -> str:
    """A file's name without the bytes that are no text."""
    return name.encode("utf-8", "replace").decode()


def _counted(count: int, one: str, many: str) -> str:
    return f"{count:,} {one if count == 1 else many}"


# --- the pictures --------------------------------------------------------------------------------------------------


def _files(about: FolderInfo) -> Section:
    found = about.scan
    files = _counted(len(found.pictures) + len(found.bad), "file", "files")
    modes: Counter[str] = Counter()
    for mode, count in found.modes.items():
        modes[_MODES.get(mode, mode)] += count
    rows = [("format", _listing(found.formats)), ("kind", _listing(modes)), ("size", _sizes(found.sizes))]
    return Section(f"{_place(about.path)}: {_counted(len(found.pictures), 'picture', 'pictures')} in {files}", rows)


def _listing(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{count:,} {name}" for name, count in counts.items())


def _sizes(sizes: Mapping[str, int]) -> str:
    if len(sizes) == 1:
        return f"all {next(iter(sizes))}"
    if len(sizes) <= _FEW_SIZES:
        return ", ".join(f"{count:,} of {size}" for size, count in sizes.items())
    sides = np.array([[int(side) for side in size.split(" x ")] for size in sizes])
    (low_w, low_h), (high_w, high_h) = sides.min(0), sides.max(0)
    return f"{len(sizes):,} different ones, {low_w} to {high_w} wide and {low_h} to {high_h} high"


def _care(about: FolderInfo) -> list[str]:
    """What was done to which pictures."""
    preprocessing, traits, said = about.preprocessing, about.scan.traits, []
    words = {
        "oblong": (
            "is not square",
            "are not square",
            _FITS[preprocessing.fit].format(background=preprocessing.background),
        ),
        "small": (
            f"is smaller than {preprocessing.size} pixels",
            f"are smaller than {preprocessing.size} pixels",
            "enlarged",
        ),
        "transparent": ("has transparent parts", "have transparent parts", f"laid on {preprocessing.background}"),
        "deep": ("has 16 bits", "have 16 bits", _depth(preprocessing, about.scan.brightest)),
        "frames": ("has several frames", "have several frames", "the first is used"),
        "turned": ("lies on its side", "lie on their side", "turned as the camera noted"),
    }
    for trait, (one, many, done) in words.items():
        if count := traits.get(trait, 0):
            said.append(f"{_counted(count, one, many)}: {done}")
    if about.scan.gray and preprocessing.channels == "auto" and about.scan.modes.get("RGB"):
        said.append("no picture has colour, though some are stored as if: one channel is kept")
    if preprocessing.channels == "gray" and not about.scan.gray:
        said.append("colours are turned into greys, as asked")
    return said


def _depth(preprocessing: Preprocessing, brightest: int) -> str:
    told = f"brought to 8, {preprocessing.white} being white"
    if brightest and brightest < preprocessing.white // 3:
        return f"{told}; but the brightest value is {brightest}, so they will be dark: white={_next_power(brightest)}"
    return told


def _next_power(brightest: int) -> int:
    """The largest value of as many bits as it takes: 4095 for 12."""
    return (1 << int(brightest).bit_length()) - 1


def _seen(data: Dataset, told: Sequence[str]) -> Section:
    channels, height, width = data.shape
    colour = {1: "grey", 3: "colour"}.get(channels, f"{channels} channels")
    place = "" if data.resident else "; they stay on disk and are read as needed"
    bytes = data.size * channels * height * width
    rows = [(line,) for line in told]
    return Section(
        f"What the model sees: {data.size:,} images of {height} x {width}, {colour} ({_bytes(bytes)}{place})", rows
    )


def _bytes(count: int) -> str:
    for unit, size in (("GB", 10**9), ("MB", 10**6), ("kB", 10**3)):
        if count >= size:
            return f"{count / size:.3g} {unit}"
    return f"{count} bytes"


# --- the factors ---------------------------------------------------------------------------------------------------


def _factors(data: Dataset, about: Any) -> Section:
    rows = [_factor(data, k) for k in range(len(data.factor_names))]
    source, notes = "", []
    if isinstance(about, FolderInfo):
        notes = _joining(about)
        grouped = about.joined.grouped
        files = [_place(file) for file in (about.factors, grouped and grouped.path) if file]
        if not about.factors and len(rows) > bool(grouped):
            files.insert(0, "the names of the sub-folders")
        source = f", from {' and '.join(files)}" if files else ""
    notes += [f"column {name!r} is no factor: {reason}" for name, reason in data.source_info.excluded_columns.items()]
    count = _counted(len(rows), "factor", "factors") if rows else "No factors known"
    return Section(count + source, [*rows, *((note,) for note in notes)])


def factor_values_of(data: Dataset, k: int) -> np.ndarray:
    """One factor of all observations (of very many, of a part), as numbers; nan where it is not known."""
    index = torch.arange(0, data.size, -(-data.size // 1_000_000))
    return data.values(index)[:, k].numpy()


def _factor(data: Dataset, k: int) -> tuple[str, ...]:
    values, size = data.factor_values[k], data.factor_sizes[k]
    numbers = np.empty(0) if data.grid else factor_values_of(data, k)
    missing = int(np.isnan(numbers).sum())
    gaps = f"{missing:,} missing" if missing else ""
    if data.factor_types[k] == "continuous":
        different = _counted(len(np.unique(numbers[~np.isnan(numbers)])), "value", "values")
        reach = f"{different} from {np.nanmin(numbers):.4g} to {np.nanmax(numbers):.4g}"
        return data.factor_names[k], "continuous", reach, gaps
    some = ", ".join(repr_value(value).strip("'") for value in values[:6]) + (", ..." if size > 6 else "")
    return data.factor_names[k], "discrete", f"{_counted(size, 'value', 'values')}: {some}", gaps


def _joining(about: FolderInfo) -> list[str]:
    """Where rows and pictures did not meet."""
    matched, said = about.joined.matched, _grouping(about)
    if matched is None:
        if about.tables:
            table = _place(about.path / about.tables[0])
            said.append(
                f"{about.tables[0]} lies beside the pictures; to use it: --factors {table} (or --groups, --pairs)"
            )
        return said
    said.append(f"column {matched.column!r} names the pictures")
    if matched.files_without_row:
        said.append(
            f"{_counted(len(matched.files_without_row), 'picture has', 'pictures have')} no row: "
            f"{_some(matched.files_without_row)}"
        )
    return said + _wrong_rows(about)


def _wrong_rows(about: FolderInfo) -> list[str]:
    """Rows of a table that are of no use."""
    matched, said = about.joined.matched, []
    if matched is not None and matched.unmatched_rows:
        said.append(
            f"{_counted(len(matched.unmatched_rows), 'row names', 'rows name')} no picture: "
            f"{_some(matched.unmatched_rows)}"
        )
    if matched is not None and matched.duplicate_files:
        many = _counted(len(matched.duplicate_files), "picture has", "pictures have")
        said.append(f"{many} several rows, of which the first is used: {_some(matched.duplicate_files)}")
    return said


def _grouping(about: FolderInfo) -> list[str]:
    """Who takes no part in groups."""
    grouped = about.joined.grouped
    if grouped is None:
        return []
    bare = int((grouped.table.classes_NK < 0).sum())
    said = [f"row 1 of {grouped.path.name} is taken for a header"] if grouped.header else []
    if bare:
        said.append(f"{_counted(bare, 'picture is', 'pictures are')} in no group")
    return said + _alone(about)


def _alone(about: FolderInfo) -> list[str]:
    """Groups nobody can be paired in."""
    grouped = about.joined.grouped
    if grouped is None or not grouped.singleton_groups:
        return []
    many = _counted(len(grouped.singleton_groups), "group has", "groups have")
    return [f"{many} one picture only and cannot be trained on: {_some(grouped.singleton_groups)}"]


def _some(names: Sequence[str], most: int = 3) -> str:
    more = f" and {len(names) - most:,} more" if len(names) > most else ""
    return ", ".join(map(printable, names[:most])) + more


# --- what was skipped ----------------------------------------------------------------------------------------------


def _skipped(about: FolderInfo) -> list[Section]:
    bad = about.scan.bad
    return (
        [Section(f"{_counted(len(bad), 'file', 'files')} skipped", [(printable(n), r) for n, r in bad.items()])]
        if bad
        else []
    )


def skipped_files(data: Dataset) -> list[str]:
    """What of one's own set is not trained on, a line each: it is kept in the run, and told even if all else is not."""
    about = data.origin.source_info
    if not isinstance(about, FolderInfo):
        return []
    bad = list(about.scan.bad)
    skipped = [f"skipped {_counted(len(bad), 'file', 'files')}: {_some(bad)}"] if bad else []
    return skipped + _alone(about)


def data_warnings(data: Dataset) -> list[str]:
    """What of one's own set may not be as it was meant, a line each; pictures without a row are meant."""
    about = data.origin.source_info
    return skipped_files(data) + (_wrong_rows(about) if isinstance(about, FolderInfo) else [])


def data_summary(data: Dataset, most: int = 5) -> list[str]:
    """What one should know before training on it, in a few lines; nothing for sets that are not one's own."""
    about = data.origin.source_info
    if isinstance(about, FolderInfo):
        lines = [_head(data, about)]
        bad = list(about.scan.bad.items())
        if bad:
            lines.append(f"skipped {_counted(len(bad), 'file', 'files')}:")
            lines += [f"  {printable(name)}: {reason}" for name, reason in bad[:most]]
            if len(bad) > most:
                lines.append(f"  and {len(bad) - most:,} more; all of them: unweave data inspect {_place(about.path)}")
        matched = about.joined.matched
        return lines + [note for note in _joining(about) if matched is None or "names the pictures" not in note]
    return [_head(data, about)] if isinstance(about, ArrayInfo) else []


def _head(data: Dataset, about: Any) -> str:
    channels, height, width = data.shape
    colour = {1: " grey", 3: " colour"}.get(channels, "")
    known = f"; factors: {', '.join(data.factor_names)}" if data.factor_names else "; no factors known"
    what = about.form if about.path is None else _place(about.path)
    return f"{what}: {data.size:,} images as {height} x {width}{colour}{known}"
