"""Read pairs and groups from a file of the user: two names per row, with or without a header.

    IMG_0001.jpg,IMG_0002.jpg            a pair
    IMG_0001.jpg,IMG_0002.jpg,content    a pair, and what the two share: content or style
    IMG_0001.jpg,Anna                    an image and its group

Images are named as in a table of factors; see `file_names`.
An error names the first invalid row, numbered as in a spreadsheet.

Shape letters: N observations, L listed pairs.
"""

import csv
import hashlib
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import torch
from torch import Tensor

from unweave.data.dataset import Dataset, all_indices
from unweave.data.storage.regular_file import irregular_kind
from unweave.data.user.factor_table import FactorTable, text_factor
from unweave.data.user.file_names import AMBIGUOUS, ELSEWHERE, UNKNOWN, FileNames
from unweave.data.user.table_file import read_separated
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
    renamed: str = ""  # the folder that the rows name, if it is not the folder that was read


class PairList(NamedTuple):
    """Pairs of observations of a data set."""

    index_L2: Tensor
    left_out: int  # number of pairs with an image that is unreadable or not in this part of the folder
    header: bool
    shared_L: Tensor | None = None  # 0 if a pair shares the content, 1 if the style; None if the file does not say
    renamed: str = ""  # the folder that the rows name, if it is not the folder of the data


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


_PROBLEMS = {
    UNKNOWN: "is not an image of the folder",
    AMBIGUOUS: "names several images",
    ELSEWHERE: "names an image in another folder",
}


class _Images:
    """The images that the first entries of the rows name."""

    def __init__(
        self, file: RowFile, columns: int, images: Sequence[str], unreadable: Iterable[str], root: Path | None
    ) -> None:
        self.file, self.example = file, images[0]
        files = FileNames(images, unreadable, root)
        names = list(dict.fromkeys(name for row in file.rows for name in (row.left, row.right)[:columns]))
        matches = files.match_all(names)
        self.found, self.renamed = dict(zip(names, matches, strict=True)), files.renamed(matches)
        self.rows = self._without_header(names[:columns])

    def find(self, row: Row, name: str) -> int | None:
        """Return the index of an image; None if its file is unreadable, of which reading the folder has warned."""
        match = self.found[name]
        if not match.problem:
            return match.image
        accepted = f"the path of an image in the folder, such as {self.example!r}"
        raise self.file.error(f"{name!r} {_PROBLEMS[match.problem]}", accepted, row, name)

    def _without_header(self, names: Sequence[str]) -> list[Row]:
        """Return the rows without a first row whose names are no file names."""
        if any(self.found[name].problem != UNKNOWN or Path(name).suffix for name in names):
            return self.file.rows
        if not self.file.rows[1:]:
            raise self.file.error("has no rows below its header")
        return self.file.rows[1:]


def read_groups(
    file: RowFile, images: Sequence[str], unreadable: Iterable[str], root: Path | None = None
) -> GroupAssignment:
    """Return the listed groups as a factor of these images; an image that is not listed is in no group."""
    known = _Images(file, 1, images, unreadable, root)
    names_N: list[str | None] = [None] * len(images)
    seen: dict[int, int] = {}
    for row in known.rows:
        if (index := known.find(row, row.left)) is None:
            continue
        if index in seen:
            raise file.error(f"{row.left!r} is already in row {seen[index]}", "one row per image", row, row.left)
        seen[index], names_N[index] = row.number, row.right
    counts = Counter(name for name in names_N if name is not None)
    singletons = [name for name, count in counts.items() if count == 1]
    if len(singletons) == len(counts):
        raise file.error("every group has only one image", "a group of two or more images")
    return GroupAssignment(file.path, text_factor("group", names_N), singletons, known.rows != file.rows, known.renamed)


def read_pairs(path: str, data: Dataset, fingerprint: str | None = None) -> PairList:
    """Return the pairs that a file lists, as observations of a folder or of a view of one."""
    folder = data.origin
    if not folder.source_info.file_names:
        message = f"pairs '{path}' list image files, but data {folder.name!r} has none; pass a folder of images"
        raise UserError(message, argument="data", value=folder.name, accepted="a folder of images")
    file = read_rows("pairs", path)
    if fingerprint not in (None, file.digest()):
        raise file.error("the rows are not those that the run was created with", "the original file")
    info, root = folder.source_info, folder.options.get("path")
    known = _Images(file, 2, info.file_names, info.unreadable_files, Path(str(root)) if root else None)
    listed, shared = _find_pairs(file, known), [_shared(file, row) for row in known.rows]
    number_N = torch.full((folder.size,), -1)  # index in `data` of each image of the folder; the first of several
    origin_N = data.origin_index(all_indices(data)).cpu()
    number_N[origin_N.flip(0)] = torch.arange(data.size - 1, -1, -1)
    index_L2 = number_N[torch.tensor([pair for pair in listed if pair is not None], dtype=torch.int64).reshape(-1, 2)]
    here_L = (index_L2 >= 0).all(1)
    index_L2 = index_L2[here_L]
    if not len(index_L2):
        raise file.error(f"has no pair of two images of data {data.name!r}", "at least one pair of images of the data")
    shared_L = torch.tensor([what for what, pair in zip(shared, listed, strict=True) if pair is not None])[here_L]
    left_out, header = len(listed) - len(index_L2), known.rows != file.rows
    return PairList(index_L2, left_out, header, shared_L if file.has_shared_column else None, known.renamed)


def _shared(file: RowFile, row: Row) -> int:
    """Return what a pair shares, 0 for content and 1 for style; 0 if the file does not say."""
    shared = row.shared.casefold()
    if shared not in (SHARED if file.has_shared_column else ("",)):
        raise file.error(f"third entry is {row.shared!r}", "content or style, which the pair shares", row, row.shared)
    return SHARED.index(shared) if shared else 0


def _find_pairs(file: RowFile, known: _Images) -> list[tuple[int, int] | None]:
    """Return the images of each pair; None if one of them is unreadable."""
    found: list[tuple[int, int] | None] = []
    seen: dict[frozenset[int], int] = {}
    for row in known.rows:
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
