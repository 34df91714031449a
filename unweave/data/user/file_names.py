"""Find the image files that rows of tables, pairs and groups name.

A row names an image by its path in the folder (exact), by the end of that path, or by a longer path that ends with it,
each with or without the extension and in any capitalisation. It must fit one image, in the folder that it names:

- Folders are compared as far as both paths have any: `cats/1.png` is not `dogs/1.png`.
- Folders of a row above the data, `/home/me/photos` in `/home/me/photos/cats/1.png`, must agree among all rows. If they
  do not, only rows of the folder that is read are used: of `train/1.png` and `val/1.png` the latter, in a folder `val`.
"""

from collections.abc import Iterable, Sequence
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

UNKNOWN, AMBIGUOUS, ELSEWHERE = "no image", "several images", "an image in another folder"
Folders = tuple[str, ...]


class Match(NamedTuple):
    """What a row names."""

    image: int | None  # position of the image; None if the row does not name one
    problem: str = ""  # why not; "" if the row names a file that is not a readable image
    exact: bool = False  # True if the row gives the path in the folder
    above: Folders = ()  # the folders of the row above the data


class FileNames:
    """The files of a folder, found by name.

    Parameters
    ----------
    images : paths inside the folder
    unreadable : paths of files that are not readable images
    root : the folder
    """

    def __init__(self, images: Sequence[str], unreadable: Iterable[str] = (), root: Path | None = None) -> None:
        self.files, self.count = [*images, *unreadable], len(images)
        self.root: Folders = tuple(part.casefold() for part in root.parts) if root else ()
        self.paths = {file: number for number, file in enumerate(self.files)}
        self.depth = max((file.count("/") for file in self.files), default=0)
        self.folders: dict[str, Folders] = {}  # above the data, as rows write them

    @cached_property
    def whole(self) -> dict[str, int | None]:
        """Paths without regard to case and extension; None if several files have one."""
        found: dict[str, int | None] = {}
        extensions = {_split_extension(file)[1] for file in self.files[: self.count]}
        for number, file in enumerate(map(str.casefold, self.files)):
            stem, extension = _split_extension(file)
            _add(found, file, number)
            # 1.txt beside 1.png is not called 1, but a damaged 1.png is
            if stem != file and (number < self.count or extension in extensions):
                _add(found, stem, number)
        return found

    @cached_property
    def ends(self) -> dict[str, int | None]:
        """All ends of these paths; None if several files have one."""
        found: dict[str, int | None] = {}
        for path, number in self.whole.items():
            while path:
                found[path] = number if found.get(path, number) == number else None
                path = path.partition("/")[2]
        return found

    def match(self, name: str) -> Match:
        """Return what a single name means, whatever the folders above the data."""
        if name in self.paths:
            return self._match(self.paths[name], exact=True)
        path = _normalized(name)
        if path in self.paths:
            return self._match(self.paths[path], exact=True)
        folded = path.casefold()
        if folded in self.whole:
            return self._match(self.whole[folded])
        if folded.count("/") < self.depth and folded in self.ends:
            return self._match(self.ends[folded])
        rest = folded
        while "/" in rest:  # a path that begins above the data; the longest end decides
            rest = rest.partition("/")[2]
            if rest in self.whole:
                return self._match_above(path, rest)
        return Match(None, ELSEWHERE if rest in self.ends else UNKNOWN)

    def _match_above(self, path: str, end: str) -> Match:
        """Return what a path means of which an end, without regard to case, is a path in the folder."""
        above = path.rsplit("/", end.count("/") + 1)[0]
        inside = path[len(above) + 1 :]
        if above not in self.folders:
            self.folders[above] = tuple(above.casefold().split("/"))
        folders = self.folders[above]
        if inside in self.paths:
            return self._match(self.paths[inside], exact=folders == self.root[-len(folders) :], above=folders)
        return self._match(self.whole[end], above=folders)

    def match_all(self, names: Iterable[str]) -> list[Match]:
        """Return what the rows of a table mean; see `agreeing`."""
        return self.agreeing([self.match(name) for name in names])

    def agreeing(self, matches: Sequence[Match]) -> list[Match]:
        """Return the matches, without those whose folders above the data contradict the folder or the other rows."""
        given = {match.above for match in matches if match.above}
        most = max((_agreement(above, self.root) for above in given), default=0)
        best = [above for above in given if _agreement(above, self.root) == most]
        used = max(best, key=len, default=())
        if not all(_same_place(above, used) for above in best):  # it is unknown which of them is the folder
            return [Match(None, ELSEWHERE) if match.above else match for match in matches]
        refused = {above for above in given if not _same_place(above, used)}
        return [Match(None, ELSEWHERE) if match.above in refused else match for match in matches]

    def renamed(self, matches: Iterable[Match]) -> str:
        """Return the folder that the rows name instead of the one that is read; "" if they name that one or none."""
        above = max((match.above for match in matches), key=len, default=())
        return "/".join(above) if self.root and not _same_place(above[-1:], self.root) else ""

    def _match(self, number: int | None, exact: bool = False, above: Folders = ()) -> Match:
        if number is None:
            return Match(None, AMBIGUOUS)
        return Match(number if number < self.count else None, "", exact, above)


def _normalized(name: str) -> str:
    """Return a path in the notation of any system, without its empty parts."""
    path = name.strip().replace("\\", "/")
    if "//" not in path and "./" not in path:
        return path.strip("/")
    parts: list[str] = []
    for part in path.split("/"):
        if part == "..":
            parts = parts[:-1]
        elif part not in ("", "."):
            parts.append(part)
    return "/".join(parts)


def _split_extension(file: str) -> tuple[str, str]:
    """Return a path without its extension, and the extension."""
    stem, _, extension = file.rpartition(".")
    return (stem, extension.casefold()) if stem and not stem.endswith("/") and "/" not in extension else (file, "")


def _add(table: dict[str, int | None], key: str, number: int) -> None:
    table[key] = number if table.get(key, number) == number else None


def _same_place(one: Folders, other: Folders) -> bool:
    """Return True if two paths agree as far as both have folders, from the end."""
    return _agreement(one, other) == min(len(one), len(other))


def _agreement(one: Folders, other: Folders) -> int:
    """Return the number of folders that are equal at the ends of two paths."""
    pairs = zip(reversed(one), reversed(other))
    return next((count for count, (a, b) in enumerate(pairs) if a != b), min(len(one), len(other)))
