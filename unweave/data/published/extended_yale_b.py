"""The cropped Extended Yale Face Database B (Georghiades et al. 2001, Lee et al. 2005): faces under 64 lights."""

import re
from pathlib import Path

import numpy as np

from unweave.data.dataset import Dataset
from unweave.data.storage.archive import FileTree, read_image, resized
from unweave.data.storage.array_store import Factors, in_chunks, write_rows
from unweave.data.storage.download import RemoteFile
from unweave.data.storage.source import DataPath, open_files
from unweave.errors import check_integer

REMOTE = RemoteFile("CroppedYale.zip", ("http://vision.ucsd.edu/extyaleb/CroppedYaleBZip/CroppedYale.zip",))
NAMES = ("subject", "azimuth", "elevation")
# Other endings: "....pgm.bad" are failed exposures, "..._Ambient.pgm" are images of the whole scene without flash.
_NAME = re.compile(r"yaleB(\d\d)_P00A([+-]\d\d\d)E([+-]\d\d)\.pgm$")


def extended_yale_b(*, path: DataPath = None, size: int = 64) -> Dataset:
    """Extended Yale B: 38 faces under 64 lights, 2414 grey photographs resized to 64 x 64.

    `size` is the side in pixels; the published images of 168 x 192 become square. `path` is CroppedYale.zip or its
    folder.
    """
    check_integer("size", size, 8, 192)
    return open_files("extended_yale_b", [REMOTE], path, {"size": size}, _read, tree=True)


def _read(files: list[Path], folder: Path, size: int) -> Factors:
    with FileTree(files[0]) as tree:
        rows = {tuple(map(int, match.groups())): name for name in tree.names if (match := _NAME.search(name))}
        faces = (resized(read_image(tree.read(rows[row]), "L", rows[row]), size) for row in sorted(rows))
        if not rows:
            raise ValueError("there are no images named like yaleB01_P00A+000E+00.pgm")
        write_rows(folder / "pixels.npy", len(rows), in_chunks(faces), "extended_yale_b")
    found = [np.unique(column, return_inverse=True) for column in np.array(sorted(rows)).T]
    np.save(folder / "classes.npy", np.stack([classes for _, classes in found], axis=1).astype(np.uint8))
    return Factors(NAMES, tuple(tuple(map(float, values)) for values, _ in found))
