"""COIL-20 (Nene, Nayar and Murase 1996): twenty objects on a turntable."""

import re
from pathlib import Path

import numpy as np

from unweave.data.dataset import Dataset
from unweave.data.storage.archive import FileTree, read_image, resized
from unweave.data.storage.array_store import Factors, grid_values, in_chunks, write_rows
from unweave.data.storage.download import RemoteFile
from unweave.data.storage.source import DataPath, open_files
from unweave.errors import check_integer

_FILE = "coil-20-proc.zip"
_HOMES = ("https://www.cs.columbia.edu/CAVE/databases/", "https://cave.cs.columbia.edu/old/databases/")
REMOTE = RemoteFile(_FILE, tuple(f"{home}SLAM_coil-20_coil-100/coil-20/{_FILE}" for home in _HOMES))
_NAME = re.compile(r"obj(\d+)__(\d+)\.png$")


def coil20(*, path: DataPath = None, size: int = 64) -> Dataset:
    """COIL-20: 20 objects photographed on a turntable every 5 degrees, 1440 grey images resized to 64 x 64.

    `size` is the side in pixels (128 in the published images). `path` is coil-20-proc.zip or its folder.
    """
    check_integer("size", size, 8, 128)
    return open_files("coil20", [REMOTE], path, {"size": size}, _read, tree=True)


def _read(files: list[Path], folder: Path, size: int) -> Factors:
    with FileTree(files[0]) as tree:
        rows = {tuple(map(int, match.groups())): name for name in tree.names if (match := _NAME.search(name))}
        if not rows:
            raise ValueError("there are no images named like obj1__0.png")
        objects, poses = grid_values(np.array(sorted(rows)))
        images = (resized(read_image(tree.read(rows[row]), "L", rows[row]), size) for row in sorted(rows))
        write_rows(folder / "pixels.npy", len(rows), in_chunks(images), "coil20")
    return Factors(("object", "pose"), (objects, tuple(5.0 * pose for pose in poses)))
