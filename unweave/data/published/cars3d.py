"""Cars3D (Reed et al. 2015, after Fidler et al. 2012) from its own archive of MATLAB files.

Shape letters: E elevations, A azimuths, O objects, H height, W width, C channels.
"""

from __future__ import annotations

import io
from functools import partial
from pathlib import Path

import numpy as np
from PIL import Image

from unweave.data.storage.archive import FileTree, resized
from unweave.data.storage.array_store import Factors, write_rows
from unweave.data.storage.download import RemoteFile
from unweave.data.storage.progress import progress_task
from unweave.data.storage.source import DataPath, pictures
from unweave.data.storage.stored_images import StoredImages
from unweave.errors import check_integer

_FILE = "nips2015-analogy-data.tar.gz"
REMOTE = RemoteFile(_FILE, (f"http://www.scottreed.info/files/{_FILE}",), digest="md5:4e866a7919c1beedf53964e6f7a23686")
NAMES = ("elevation", "azimuth", "object")


def cars3d(*, path: DataPath = None, size: int = 64) -> StoredImages:
    """Cars3D: 183 cars seen from 4 heights and 24 sides, 17568 pictures of 64 x 64 in colour.

    `size` is the side in pixels, 128 as published. `path` is the .tar.gz, or the folder `cars` that was in it.
    """
    check_integer("size", size, 8, 128)
    return pictures("cars3d", [REMOTE], path, {"size": size}, partial(_read, size), tree=True)


def _read(size: int, files: list[Path], folder: Path) -> Factors:
    with FileTree(files[0]) as tree:
        names = _listed(tree)
        cars = {}
        with progress_task("converting cars3d", len(names), "") as step:
            # a packed archive is read from its start to its end; the list, not the archive, gives the order
            for name in sorted(names, key=tree.names.index):
                cars[name] = _car(tree.read(name), name, size)
                step(len(cars))
    shapes = {car.shape for car in cars.values()}
    if len(shapes) != 1:
        raise ValueError(f"its cars have pictures of different numbers and sizes: {sorted(shapes)}")
    stack = np.stack([cars[name] for name in names], axis=2).reshape(-1, size, size, 3)
    write_rows(folder / "pixels.npy", len(stack), [stack], "cars3d")
    elevations, azimuths = (tuple(map(float, range(count))) for count in next(iter(shapes))[:2])
    return Factors(NAMES, (elevations, azimuths, tuple(Path(name).stem for name in names)))


def _listed(tree: FileTree) -> list[str]:
    """The cars in the order of list.txt: files run from 001 to 199 with gaps, and a folder's order is nobody's."""
    lists = [name for name in tree.names if name.endswith("cars/list.txt")]
    if not lists:
        raise ValueError("there is no cars/list.txt")
    folder = lists[0].removesuffix("list.txt")
    lines = tree.read(lists[0]).decode("ascii").split()
    names = [f"{folder}{line.removesuffix('.mat')}.mat" for line in lines]
    missing = sorted(set(names) - set(tree.names))
    if missing or not names:
        raise ValueError(f"{lists[0]} names {len(names)} cars, of which {len(missing)} are missing {missing[:1]}")
    return names


def _car(content: bytes, name: str, size: int) -> np.ndarray:
    """One car [E, A, H, W, C], resized."""
    from scipy.io import loadmat  # type: ignore[import-untyped]
    from scipy.io.matlab import MatReadError  # type: ignore[import-untyped]

    try:
        image = loadmat(io.BytesIO(content), variable_names=["im"])["im"]
    except (MatReadError, KeyError, ValueError, TypeError, OSError, EOFError, NotImplementedError) as error:
        raise ValueError(f"{name} is no MATLAB file with an array 'im' ({error})") from error
    if image.ndim != 5 or image.shape[2] != 3 or image.dtype != np.uint8:
        raise ValueError(f"{name} holds {image.dtype} {image.shape}, not bytes [H, W, 3, azimuth, elevation]")
    views = image.transpose(4, 3, 0, 1, 2)
    return np.stack([[resized(Image.fromarray(view), size) for view in row] for row in np.ascontiguousarray(views)])
