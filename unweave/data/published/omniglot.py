"""Omniglot (Lake, Salakhutdinov and Tenenbaum 2015): characters of 50 alphabets, each drawn by 20 people."""

import re
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import numpy as np
from PIL import ImageOps

from unweave.data.dataset import Dataset
from unweave.data.storage.archive import FileTree, read_image, resized
from unweave.data.storage.array_store import Factors, in_chunks, write_rows
from unweave.data.storage.download import remote_files
from unweave.data.storage.source import DataPath, open_files
from unweave.errors import check_choice, check_integer

_HOME = "https://github.com/brendenlake/omniglot/raw/master/python/"
_REMOTES = remote_files(
    (_HOME,),
    ("images_background.zip", 9464212, "ad41ab679c8b5d90b271ef46be6987cc81211774a695c29dcc5367b2b26ee640"),
    ("images_evaluation.zip", 6462886, "1f61a8f3366785b057fc117d9228e78a16e3d976c8953b2a10fcc74cf0609cee"),
)
REMOTES = {"all": _REMOTES, "background": _REMOTES[:1], "evaluation": _REMOTES[1:]}
NAMES = ("alphabet", "character", "drawer")
_NAME = re.compile(r"([^/]+)/character(\d+)/\d+_(\d+)\.png$")


def omniglot(*, path: DataPath = None, part: str = "all", size: int = 64) -> Dataset:
    """Omniglot: 1623 characters of 50 alphabets by 20 people each, 32460 drawings, white on black, of 64 x 64.

    `part` is all, background (30 alphabets) or evaluation (20). `size` is the side in pixels, 105 in the published
    images. `path` is one of the .zip files, a folder with images_background and images_evaluation, zipped or not, or
    one of these folders.
    """
    check_choice("part", part, REMOTES)
    check_integer("size", size, 8, 105)
    return open_files("omniglot", REMOTES[part], path, {"part": part, "size": size}, _read, tree=True)


def _read(files: list[Path], folder: Path, part: str, size: int) -> Factors:
    with ExitStack() as stack:
        trees = [stack.enter_context(FileTree(file)) for file in files]
        rows = dict(sorted(_rows(trees, part)))
        if not rows:
            raise ValueError(f"there are no images named like Greek/character01/0394_01.png in part={part!r}")
        # bright strokes on black, as in MNIST; the published drawings are black on white
        inverted = (ImageOps.invert(read_image(tree.read(name), "L", name)) for tree, name in rows.values())
        drawings = in_chunks(resized(image, size) for image in inverted)
        write_rows(folder / "pixels.npy", len(rows), drawings, "omniglot")
    alphabets, characters = (list(dict.fromkeys(row[:n] for row in rows)) for n in (1, 2))
    drawers = sorted({row[2] for row in rows})
    classes = [(alphabets.index(row[:1]), characters.index(row[:2]), drawers.index(row[2])) for row in rows]
    np.save(folder / "classes.npy", np.array(classes, dtype=np.int16))
    values = (a for (a,) in alphabets), (f"{a} {c}" for a, c in characters), map(float, drawers)
    return Factors(NAMES, tuple(tuple(column) for column in values))


def _rows(trees: list[FileTree], part: str) -> Iterator[tuple[tuple[str, int, int], tuple[FileTree, str]]]:
    """Yield alphabet, number of the character and drawer of each drawing, and its place in an archive."""
    for tree in trees:
        for name in tree.names:
            match = _NAME.search(name)
            if match and (part == "all" or f"images_{part}" in name):
                yield (match[1], int(match[2]), int(match[3])), (tree, name)
