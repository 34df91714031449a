"""Describe a data set and how it was prepared, for `unweave data inspect`, and in short for `train`."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from unweave.data.dataset import Dataset, all_indices
from unweave.data.user.arrays import Arrays
from unweave.data.user.factor_table import repr_value
from unweave.data.user.wording import count_text, first_names, printable

_MAX_SKIPPED = 5  # skipped files listed in a summary
_CHUNK = 64  # images compared at once
_MAX_OBSERVATIONS = 1_000_000  # that are read to describe a factor


class Section(NamedTuple):
    """A heading and its rows; a row with one cell is a sentence, other rows form a table."""

    heading: str
    rows: Sequence[tuple[str, ...]]


def describe(data: Dataset) -> list[Section]:
    """Return the full description of a data set."""
    info = data.source_info
    sections = [Section(info.title, info.details)] if info.title else []
    images = _images(data)
    sections += [images._replace(rows=[*images.rows, *((line,) for line in image_warnings(data))]), _factors(data)]
    if skipped := info.unreadable_files:
        heading = f"{count_text(len(skipped), 'file', 'files')} skipped"
        sections.append(Section(heading, [(printable(name), reason) for name, reason in skipped.items()]))
    return sections


def skipped_files(data: Dataset) -> list[str]:
    """Return one line for each part of user data that is not used in training; a run folder stores these lines."""
    info = data.origin.source_info
    files = list(info.unreadable_files)
    skipped = [f"skipped {count_text(len(files), 'file', 'files')}: {first_names(files)}"] if files else []
    return [*skipped, *info.group_warnings]


def data_warnings(data: Dataset) -> list[str]:
    """Return one line for each part of user data that may not be as intended."""
    return [*skipped_files(data), *data.origin.source_info.row_warnings, *value_notes(data), *image_warnings(data)]


def image_warnings(data: Dataset) -> list[str]:
    """Return one line if all images of user data are identical, or each has a single colour.

    The first other images end the search.
    """
    if not data.origin.source_info.title:
        return []
    index_N = all_indices(data)
    first = data.raw_images(index_N[:1]).cpu()
    identical = constant = True
    for part in index_N.split(_CHUNK):
        images = data.raw_images(part).cpu()
        identical = identical and bool((images == first).all())
        constant = constant and bool((images == images[..., :1, :1]).all())
        if not identical and not constant:
            return []
    if not identical:
        return [f"each of the {data.size:,} images has a single colour"]
    level = float(data.images(index_N[:1]).mean())
    colour = {0.0: "black", 1.0: "white"}.get(level, "identical") if constant else "identical"
    return [f"all {data.size:,} images are {colour}: there is nothing to learn from them"]


def value_notes(data: Dataset) -> list[str]:
    """Return one line for each factor with entries that were not read as they are written."""
    origin = data.origin
    return list(origin.table.notes) if isinstance(origin, Arrays) else []


def data_summary(data: Dataset) -> list[str]:
    """Return a few lines about user data before training on them; none for other data."""
    info = data.origin.source_info
    if not info.title:
        return []
    channels, height, width = data.shape
    colour = {1: " grey", 3: " colour"}.get(channels, "")
    factors = f"; factors: {', '.join(data.factor_names)}" if data.factor_names else "; no known factors"
    lines = [f"{info.title}: {data.size:,} images as {height} x {width}{colour}{factors}"]
    if skipped := list(info.unreadable_files.items()):
        lines.append(f"skipped {count_text(len(skipped), 'file', 'files')}:")
        lines += [f"  {printable(name)}: {reason}" for name, reason in skipped[:_MAX_SKIPPED]]
        if (more := len(skipped) - _MAX_SKIPPED) > 0:
            lines.append(f"  and {more:,} more; for all of them: unweave data inspect {info.title}")
    lines += [*info.group_notes, *info.row_notes, *value_notes(data)]
    if excluded := [f"{name} ({reason})" for name, reason in info.excluded_columns.items()]:
        lines.append(f"not used as factors: {first_names(excluded)}")
    return lines


def factor_values_of(data: Dataset, k: int) -> np.ndarray:
    """Return factor k of all observations (of a part if there are very many) as numbers; nan if unknown."""
    index = all_indices(data)[:: -(-data.size // _MAX_OBSERVATIONS)]
    return data.exact_values(index)[:, k].cpu().numpy()


def _images(data: Dataset) -> Section:
    channels, height, width = data.shape
    colour = {1: "grey", 3: "colour"}.get(channels, f"{channels} channels")
    place = "" if data.resident else "; they stay on disk and are read as needed"
    count = data.size * channels * height * width
    unit, scale = next((u for u in (("GB", 10**9), ("MB", 10**6), ("kB", 10**3)) if count >= u[1]), ("bytes", 1))
    size = f"{count / scale:.3g} {unit}"
    heading = f"What the model receives: {data.size:,} images of {height} x {width}, {colour} ({size}{place})"
    return Section(heading, [(note,) for note in data.source_info.notes])


def _factors(data: Dataset) -> Section:
    info = data.source_info
    rows = [_factor(data, k) for k in range(len(data.factor_names))]
    notes = [*info.group_notes, *info.name_notes, *info.row_notes, *value_notes(data)]
    notes += [f"column {name!r} is not a factor: {reason}" for name, reason in info.excluded_columns.items()]
    count = count_text(len(rows), "factor", "factors") if rows else "No known factors"
    source = f", from {info.factor_source}" if info.factor_source else ""
    return Section(count + source, [*rows, *((note,) for note in notes)])


def _factor(data: Dataset, k: int) -> tuple[str, ...]:
    values, size = data.factor_values[k], data.factor_sizes[k]
    numbers = np.empty(0) if data.grid else factor_values_of(data, k)
    missing = int(np.isnan(numbers).sum())
    gaps = f"{missing:,} missing" if missing else ""
    if data.factor_types[k] == "continuous":
        different = count_text(len(np.unique(numbers[~np.isnan(numbers)])), "value", "values")
        text = f"{different} from {np.nanmin(numbers):.4g} to {np.nanmax(numbers):.4g}"
        return data.factor_names[k], "continuous", text, gaps
    first = ", ".join(repr_value(value).strip("'") for value in values[:6]) + (", ..." if size > 6 else "")
    return data.factor_names[k], "discrete", f"{count_text(size, 'value', 'values')}: {first}", gaps
