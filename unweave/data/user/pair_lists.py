"""Pairs and groups as a user's file lists them: two names a row, a header or none.

    IMG_0001.jpg,IMG_0002.jpg            a pair
    IMG_0001.jpg,IMG_0002.jpg,content    a pair, and what the two share: content or style
    IMG_0001.jpg,Anna                    a picture and its group

Pictures are named as in a table of factors: by their path in the folder or the end of it, with or without ending.
Of mistakes the first is told, with its row as a spreadsheet counts them.

Shape letters: N observations, L listed pairs.
"""

from __future__ import annotations

import csv
import hashlib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from unweave.data.callspec import call_text, parse_call
from unweave.data.dataset import Dataset, all_indices
from unweave.data.user.factor_table import FactorTable
from unweave.data.user.row_matching import file_finder, find_file
from unweave.errors import UserError

NAMES = {"pairs": "two file names", "groups": "a file name and a group name"}  # what a row has
SHARED = ("content", "style")  # what a row of pairs may end with


class Row(NamedTuple):
    """Two texts, and where they stand; pairs may have a third."""

    number: int
    left: str
    right: str
    shared: str = ""


class Source(NamedTuple):
    """A file of rows that name pictures."""

    what: str  # "pairs" or "groups": the option it was given by
    path: Path
    rows: list[Row]

    def error(self, row: Row, why: str) -> UserError:
        return UserError(f"{self.what} '{self.path}', row {row.number}: {why}")

    def digest(self) -> str:
        """Eight letters that change when the rows do."""
        said = repr([row[1:] if self.has_shared_column else (row.left, row.right) for row in self.rows]).encode()
        return hashlib.blake2b(said, digest_size=4).hexdigest()

    @property
    def has_shared_column(self) -> bool:
        """Whether pairs come with what they share."""
        return any(row.shared.casefold() in SHARED for row in self.rows)


class GroupAssignment(NamedTuple):
    """The groups of the pictures of a folder."""

    path: Path
    table: FactorTable  # one factor, `group`
    singleton_groups: list[str]  # groups of one picture
    header: bool


class PairList(NamedTuple):
    """The listed pairs of a data set."""

    index_L2: Tensor
    left_out: int  # of which a picture is broken, or not in this part of the folder
    header: bool
    shared_L: Tensor | None = None  # 0 where a pair shares the content, 1 the style; None if the file does not say


def read_rows(what: str, path: str | Path) -> Source:
    """The rows of a .csv of "pairs" or "groups", blank ones passed over."""
    path, names = Path(path).expanduser().resolve(), NAMES[what]
    if not path.is_file():
        problem = "is a folder" if path.is_dir() else "is not there"
        raise UserError(f"{what} '{path}' {problem}; give a .csv with {names} a row")
    source = Source(what, path, [])
    try:
        for number, cells in _cells(path):
            row = Row(number, *(cells + ["", "", ""])[: 3 if what == "pairs" else 2])
            if len(cells) != 2 + bool(row.shared) or not row.left or not row.right:
                raise source.error(row, f"has {_count(cells)}; give {names}")
            source.rows.append(row)
    except (OSError, csv.Error) as error:
        raise UserError(f"{what} '{path}' cannot be read as a table: {error}") from error
    if not source.rows:
        raise UserError(f"{what} '{path}' has no rows; give {names} a row")
    return source


def resolve_pairs_file(text: str) -> str:
    """A text of supervision as a run keeps it: with the full path of a file of pairs, and what it must still hold."""
    kind, options = parse_call(text, "supervision=")
    if kind != "pairs" or not isinstance(options.get("file"), str):
        return text
    source = read_rows("pairs", str(options["file"]))
    kept = {"file": str(source.path), "fingerprint": options.get("fingerprint", source.digest())}
    return call_text(kind, {**options, **kept})


def _cells(path: Path) -> Iterator[tuple[int, list[str]]]:
    """The number and the texts of every row that is not blank; commas, semicolons or tabs between them."""
    content = path.read_bytes()
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError:
        text = content.decode("latin-1")
    lines = text.splitlines()
    head = next((line for line in lines if line.strip()), "")
    for number, cells in enumerate(csv.reader(lines, delimiter=max(",;\t", key=head.count), strict=True), 1):
        cells = [cell.strip() for cell in cells]
        while cells and not cells[-1]:
            cells.pop()
        if cells:
            yield number, cells


def _count(cells: Sequence[str]) -> str:
    given = sum(map(bool, cells))
    return "one entry only" if given == 1 else f"{given} entries"


class _Pictures:
    """The pictures of a folder by name."""

    def __init__(self, source: Source, pictures: Sequence[str], bad: Mapping[str, str]) -> None:
        self.source, self.pictures = source, pictures
        self.finder, self.spoilt = file_finder(pictures), file_finder(list(bad))

    def find(self, row: Row, name: str) -> int | None:
        """The number of the picture; None if its file gave no picture, which was told when the folder was read."""
        number = find_file(name, self.finder)
        if number is not None and _same_place(name, self.pictures[number]):
            return number
        if find_file(name, self.spoilt) is not None:
            return None
        last = Path(name.replace("\\", "/")).name.casefold()
        several = number is None and any(last in (p.name, p.stem) for p in map(Path, map(str.casefold, self.pictures)))
        why = "fits several pictures; give its path in the folder" if several else "is no picture of the folder"
        raise self.source.error(row, f"{name!r} {why}; one there is called {self.pictures[0]!r}")

    def is_header(self, row: Row, *names: str) -> bool:
        """Whether these cells are words about the columns: no picture is called so, and they end like no file."""
        unknown = all(find_file(n, self.finder) is None and find_file(n, self.spoilt) is None for n in names)
        return row is self.source.rows[0] and unknown and not any(Path(name).suffix for name in names)


def _same_place(name: str, picture: str) -> bool:
    """Whether the folders of the two agree as far as both have any: cats/1.png is not dogs/1.png."""
    places = (text.casefold().replace("\\", "/").split("/")[-2::-1] for text in (name, picture))
    return all(ours == theirs for ours, theirs in zip(*places) if ours not in ("", "."))


def read_groups(source: Source, pictures: Sequence[str], bad: Mapping[str, str]) -> GroupAssignment:
    """The listed groups as a factor of these pictures; a picture that is not listed is in none."""
    known = _Pictures(source, pictures, bad)
    header = known.is_header(source.rows[0], source.rows[0].left)
    rows = source.rows[header:]
    if not rows:
        raise UserError(f"groups '{source.path}' has no rows below its header; give {NAMES['groups']} a row")
    names_N: list[str | None] = [None] * len(pictures)
    seen: dict[int, int] = {}
    for row in rows:
        if (number := known.find(row, row.left)) is None:
            continue
        if number in seen:
            raise source.error(row, f"{row.left!r} is in row {seen[number]} already; give every picture one row")
        seen[number], names_N[number] = row.number, row.right
    counts = Counter(name for name in names_N if name is not None)
    singleton_groups = [name for name, count in counts.items() if count == 1]
    if len(singleton_groups) == len(counts):
        raise UserError(f"groups '{source.path}': every group has one picture only; give at least two of one group")
    return GroupAssignment(source.path, _group_factor(names_N), singleton_groups, header)


def _group_factor(names_N: Sequence[str | None]) -> FactorTable:
    """The groups as a discrete factor. They stay texts: 7 and 007 are two groups."""
    values = sorted({name for name in names_N if name is not None})
    place = {name: number for number, name in enumerate(values)}
    classes_N = np.array([-1 if name is None else place[name] for name in names_N], np.int64)
    numbers_N = np.where(classes_N < 0, np.nan, classes_N)
    return FactorTable(("group",), ("discrete",), (tuple(values),), classes_N[:, None], numbers_N[:, None], ((),))


def read_pairs(path: str, data: Dataset, fingerprint: str | None = None) -> PairList:
    """The pairs listed in a file, as numbers of observations of a folder or of a view on one."""
    folder = data.origin
    found = folder.source_info
    if not found.file_names:
        raise UserError(
            f"pairs '{path}' list image files, but data {folder.name!r} has none; pass a folder of images",
            argument="data",
            value=folder.name,
            accepted="a folder of images",
        )
    source = read_rows("pairs", path)
    if fingerprint not in (None, source.digest()):
        raise UserError(f"the pairs in '{source.path}' are not those the run was made with; put them back")
    known = _Pictures(source, found.file_names, found.unreadable_files)
    header = known.is_header(source.rows[0], source.rows[0].left, source.rows[0].right)
    rows = source.rows[header:]
    if not rows:
        raise UserError(f"pairs '{source.path}' has no rows below its header; give {NAMES['pairs']} a row")
    listed, shared = _numbers(source, rows, known), _shared(source, rows)
    number_N = torch.full((folder.size,), -1)
    origin_N = data.origin_index(all_indices(data)).cpu()
    number_N[origin_N.flip(0)] = torch.arange(data.size - 1, -1, -1)  # of one that is there often, the first
    index_L2 = number_N[torch.tensor([pair for pair in listed if pair is not None], dtype=torch.int64).reshape(-1, 2)]
    here_L = (index_L2 >= 0).all(1)
    index_L2 = index_L2[here_L]
    if not len(index_L2):
        raise UserError(f"pairs '{source.path}' has no pair of two pictures of data {data.name!r}; give at least one")
    shared_L = torch.tensor([what for what, pair in zip(shared, listed, strict=True) if pair is not None])[here_L]
    return PairList(index_L2, len(listed) - len(index_L2), header, shared_L if source.has_shared_column else None)


def _shared(source: Source, rows: Sequence[Row]) -> list[int]:
    """What each pair shares, 0 the content or 1 the style; all 0 if the file does not say."""
    found = []
    for row in rows:
        if row.shared.casefold() not in (SHARED if source.has_shared_column else ("",)):
            said = f"its third entry is {row.shared!r}" if row.shared else "has two entries where other rows have three"
            raise source.error(row, f"{said}; give content or style, what the two share")
        found.append(SHARED.index(row.shared.casefold()) if row.shared else 0)
    return found


def _numbers(source: Source, rows: Sequence[Row], known: _Pictures) -> list[tuple[int, int] | None]:
    """The pictures of each pair; None where one of them is broken."""
    found: list[tuple[int, int] | None] = []
    seen: dict[tuple[int, ...], int] = {}
    for row in rows:
        left, right = known.find(row, row.left), known.find(row, row.right)
        if left is None or right is None:
            found.append(None)
            continue
        if left == right:
            raise source.error(row, f"{row.left!r} is paired with itself; give two different pictures")
        pair = tuple(sorted((left, right)))
        if pair in seen:
            raise source.error(
                row, f"the pair {row.left!r}, {row.right!r} is in row {seen[pair]} already; list it once"
            )
        seen[pair] = row.number
        found.append((left, right))
    return found
