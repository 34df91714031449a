"""Read pairs and groups from a file of the user: two names per row, with or without a header.

    IMG_0001.jpg,IMG_0002.jpg            a pair
    IMG_0001.jpg,IMG_0002.jpg,content    a pair, and what the two share: content or style
    IMG_0001.jpg,Anna                    an image and its group

Images are named as in a table of factors: by their path in the folder or the end of it, with or without extension.
An error names the first invalid row, numbered as in a spreadsheet.

Shape letters: N observations, L listed pairs.
"""

import csv
import hashlib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import torch
from torch import Tensor

from unweave.data.dataset import Dataset, all_indices
from unweave.data.storage.regular_file import irregular_kind
from unweave.data.user.factor_table import FactorTable, read_separated, text_factor
from unweave.data.user.row_matching import file_finder, find_file
from unweave.errors import UserError, check_path

ROW_CONTENT = {"pairs": "two file names", "groups": "a file name and a group name"}
SHARED = ("content", "style")  # third entry of a row of pairs


class Row(NamedTuple):
    """Entries of one row; `shared` is "" if the row has two."""

    number: int
    left: str
    right: str
    shared: str = ""


class RowFile(NamedTuple):
    """A file of "pairs" or "groups", the option that named it."""

    option: str
    path: Path
    rows: list[Row]

    def error(self, problem: str, accepted: str = "", row: Row | None = None, value: object = None) -> UserError:
        context = f"{self.option} '{self.path}'" + (f", row {row.number}" if row else "")
        accepted = accepted or f"{ROW_CONTENT[self.option]} per row"
        value = str(self.path) if value is None else value
        return UserError(f"{context}: {problem}; give {accepted}", argument=self.option, value=value, accepted=accepted)

    def digest(self) -> str:
        """Return a fingerprint of the rows, eight letters."""
        rows = repr([row[1:] if self.has_shared_column else (row.left, row.right) for row in self.rows]).encode()
        return hashlib.blake2b(rows, digest_size=4).hexdigest()

    @property
    def has_shared_column(self) -> bool:
        """True if the file says what its pairs share."""
        return any(row.shared.casefold() in SHARED for row in self.rows)


class GroupAssignment(NamedTuple):
    """Groups of the images of a folder."""

    path: Path
    table: FactorTable  # one factor, `group`
    singleton_groups: list[str]  # groups of one image
    header: bool


class PairList(NamedTuple):
    """Pairs of observations of a data set."""

    index_L2: Tensor
    left_out: int  # number of pairs with an image that is unreadable or not in this part of the folder
    header: bool
    shared_L: Tensor | None = None  # 0 if a pair shares the content, 1 if the style; None if the file does not say


def read_rows(option: str, path: str | Path) -> RowFile:
    """Read the rows of a .csv of "pairs" or "groups"; blank rows are skipped."""
    file = RowFile(option, check_path(option, path), [])
    if not file.path.is_file():
        kind = irregular_kind(file.path)
        problem = f"is {kind}" if kind else "does not exist"
        raise file.error(problem, f"a .csv with {ROW_CONTENT[option]} per row")
    try:
        for number, cells in _cells(file.path):
            row = Row(number, *(cells + ["", "", ""])[: 3 if option == "pairs" else 2])
            if len(cells) != 2 + bool(row.shared) or not row.left or not row.right:
                raise file.error(f"number of entries is {sum(map(bool, cells))}", ROW_CONTENT[option], row, len(cells))
            file.rows.append(row)
    except (OSError, csv.Error) as error:
        raise file.error(f"cannot be read as a table ({error})") from error
    if not file.rows:
        raise file.error("has no rows")
    return file


def _cells(path: Path) -> Iterator[tuple[int, list[str]]]:
    """Yield the number and the entries of each row that is not blank, separated by commas, semicolons or tabs."""
    text, separator = read_separated(path)
    for number, cells in enumerate(csv.reader(text.splitlines(), delimiter=separator, strict=True), 1):
        cells = [cell.strip() for cell in cells]
        while cells and not cells[-1]:
            cells.pop()
        if cells:
            yield number, cells


class _Images:
    """The images of a folder, found by name."""

    def __init__(self, file: RowFile, images: Sequence[str], unreadable: Mapping[str, str]) -> None:
        self.file, self.images = file, images
        self.finder, self.unreadable = file_finder(images), file_finder(list(unreadable))

    def find(self, row: Row, name: str) -> int | None:
        """Return the index of an image; None if its file is unreadable, of which reading the folder has warned."""
        index = find_file(name, self.finder)
        if index is not None:
            # parent folders must agree as far as both have any: cats/1.png is not dogs/1.png
            parents = (text.casefold().replace("\\", "/").split("/")[-2::-1] for text in (name, self.images[index]))
            if all(ours == theirs for ours, theirs in zip(*parents) if ours not in ("", ".")):
                return index
        if find_file(name, self.unreadable) is not None:
            return None
        last = Path(name.replace("\\", "/")).name.casefold()
        ambiguous = index is None and any(last in (p.name, p.stem) for p in map(Path, map(str.casefold, self.images)))
        problem = "names several images" if ambiguous else "is not an image of the folder"
        accepted = f"the path of an image in the folder, such as {self.images[0]!r}"
        raise self.file.error(f"{name!r} {problem}", accepted, row, name)

    def without_header(self, columns: int) -> list[Row]:
        """Return the rows without the header: a first row whose first `columns` entries cannot be file names."""
        first, *rest = self.file.rows
        names = (first.left, first.right)[:columns]
        unknown = all(find_file(n, self.finder) is None and find_file(n, self.unreadable) is None for n in names)
        if not unknown or any(Path(name).suffix for name in names):
            return self.file.rows
        if not rest:
            raise self.file.error("has no rows below its header")
        return rest


def read_groups(file: RowFile, images: Sequence[str], unreadable: Mapping[str, str]) -> GroupAssignment:
    """Return the listed groups as a factor of these images; an image that is not listed is in no group."""
    known = _Images(file, images, unreadable)
    rows = known.without_header(1)
    names_N: list[str | None] = [None] * len(images)
    seen: dict[int, int] = {}
    for row in rows:
        if (index := known.find(row, row.left)) is None:
            continue
        if index in seen:
            raise file.error(f"{row.left!r} is already in row {seen[index]}", "one row per image", row, row.left)
        seen[index], names_N[index] = row.number, row.right
    counts = Counter(name for name in names_N if name is not None)
    singletons = [name for name, count in counts.items() if count == 1]
    if len(singletons) == len(counts):
        raise file.error("every group has only one image", "a group of two or more images")
    return GroupAssignment(file.path, text_factor("group", names_N), singletons, len(rows) < len(file.rows))


def read_pairs(path: str, data: Dataset, fingerprint: str | None = None) -> PairList:
    """Return the pairs that a file lists, as observations of a folder or of a view of one."""
    folder = data.origin
    if not folder.source_info.file_names:
        message = f"pairs '{path}' list image files, but data {folder.name!r} has none; pass a folder of images"
        raise UserError(message, argument="data", value=folder.name, accepted="a folder of images")
    file = read_rows("pairs", path)
    if fingerprint not in (None, file.digest()):
        raise file.error("the rows are not those that the run was created with", "the original file")
    known = _Images(file, folder.source_info.file_names, folder.source_info.unreadable_files)
    rows = known.without_header(2)
    listed, shared = _find_pairs(file, rows, known), [_shared(file, row) for row in rows]
    number_N = torch.full((folder.size,), -1)  # index in `data` of each image of the folder; the first of several
    origin_N = data.origin_index(all_indices(data)).cpu()
    number_N[origin_N.flip(0)] = torch.arange(data.size - 1, -1, -1)
    index_L2 = number_N[torch.tensor([pair for pair in listed if pair is not None], dtype=torch.int64).reshape(-1, 2)]
    here_L = (index_L2 >= 0).all(1)
    index_L2 = index_L2[here_L]
    if not len(index_L2):
        raise file.error(f"has no pair of two images of data {data.name!r}", "at least one pair of images of the data")
    shared_L = torch.tensor([what for what, pair in zip(shared, listed, strict=True) if pair is not None])[here_L]
    header = len(rows) < len(file.rows)
    return PairList(index_L2, len(listed) - len(index_L2), header, shared_L if file.has_shared_column else None)


def _shared(file: RowFile, row: Row) -> int:
    """Return what a pair shares, 0 for content and 1 for style; 0 if the file does not say."""
    shared = row.shared.casefold()
    if shared not in (SHARED if file.has_shared_column else ("",)):
        raise file.error(f"third entry is {row.shared!r}", "content or style, which the pair shares", row, row.shared)
    return SHARED.index(shared) if shared else 0


def _find_pairs(file: RowFile, rows: Sequence[Row], known: _Images) -> list[tuple[int, int] | None]:
    """Return the images of each pair; None if one of them is unreadable."""
    found: list[tuple[int, int] | None] = []
    seen: dict[frozenset[int], int] = {}
    for row in rows:
        left, right = known.find(row, row.left), known.find(row, row.right)
        if left is None or right is None:
            found.append(None)
            continue
        pair, names = frozenset((left, right)), (row.left, row.right)
        if left == right:
            raise file.error(f"{row.left!r} is paired with itself", "two different images", row, row.left)
        if pair in seen:
            raise file.error(f"the pair {names} is already in row {seen[pair]}", "each pair once", row, names)
        seen[pair] = row.number
        found.append((left, right))
    return found
