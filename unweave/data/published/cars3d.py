"""Cars3D (Reed et al. 2015, after Fidler et al. 2012) from its own archive of MATLAB files.

Shape letters: E elevations, A azimuths, O objects, H height, W width, C channels.
"""

import io
from pathlib import Path

import numpy as np
from PIL import Image

from unweave.data.dataset import Dataset
from unweave.data.storage.archive import FileTree, resized
from unweave.data.storage.array_store import Factors, write_rows
from unweave.data.storage.download import RemoteFile
from unweave.data.storage.progress import progress_task
from unweave.data.storage.source import DataPath, open_files
from unweave.errors import check_integer

_FILE = "nips2015-analogy-data.tar.gz"
REMOTE = RemoteFile(_FILE, (f"http://www.scottreed.info/files/{_FILE}",), digest="md5:4e866a7919c1beedf53964e6f7a23686")
NAMES = ("elevation", "azimuth", "object")


def cars3d(*, path: DataPath = None, size: int = 64) -> Dataset:
    """Cars3D: 183 cars at 4 elevations and 24 azimuths, 17568 images of 64 x 64 in colour.

    `size` is the side in pixels (128 in the published images). `path` is the .tar.gz or its folder `cars`.
    """
    check_integer("size", size, 8, 128)
    return open_files("cars3d", [REMOTE], path, {"size": size}, _read, tree=True)


def _read(files: list[Path], folder: Path, size: int) -> Factors:
    with FileTree(files[0]) as tree:
        names = _car_names(tree)
        cars = {}
        with progress_task("converting cars3d", len(names), "") as update:
            # read in the order of the archive, which is compressed as a whole
            for name in sorted(names, key=tree.names.index):
                cars[name] = _car(tree.read(name), name, size)
                update(len(cars))
    shapes = {car.shape for car in cars.values()}
    if len(shapes) != 1:
        raise ValueError(f"its cars have different numbers or sizes of images: {sorted(shapes)}")
    stack = np.stack([cars[name] for name in names], axis=2).reshape(-1, size, size, 3)
    write_rows(folder / "pixels.npy", len(stack), [stack], "cars3d")
    elevations, azimuths = (tuple(map(float, range(count))) for count in next(iter(shapes))[:2])
    return Factors(NAMES, (elevations, azimuths, tuple(Path(name).stem for name in names)))


def _car_names(tree: FileTree) -> list[str]:
    """Return the files of the cars in the order of list.txt; their numbers run from 001 to 199 with gaps."""
    lists = [name for name in tree.names if name.endswith("cars/list.txt")]
    if not lists:
        raise ValueError("there is no cars/list.txt")
    folder = lists[0].removesuffix("list.txt")
    lines = tree.read(lists[0]).decode("ascii").split()
    names = [f"{folder}{line.removesuffix('.mat')}.mat" for line in lines]
    missing = sorted(set(names) - set(tree.names))
    if missing or not names:
        raise ValueError(f"{lists[0]} lists {len(names)} cars, of which {len(missing)} are missing {missing[:1]}")
    return names


def _car(content: bytes, name: str, size: int) -> np.ndarray:
    """Return the images of one car [E, A, H, W, C], resized."""
    from scipy.io import loadmat  # type: ignore[import-untyped]
    from scipy.io.matlab import MatReadError  # type: ignore[import-untyped]

    try:
        image = loadmat(io.BytesIO(content), variable_names=["im"])["im"]
    except (MatReadError, KeyError, ValueError, TypeError, OSError, EOFError, NotImplementedError) as error:
        raise ValueError(f"{name} is not a MATLAB file with an array 'im' ({error})") from error
    if image.ndim != 5 or image.shape[2] != 3 or image.dtype != np.uint8:
        raise ValueError(f"{name} contains {image.dtype} {image.shape}, not bytes [H, W, 3, azimuth, elevation]")
    views = image.transpose(4, 3, 0, 1, 2)
    return np.stack([[resized(Image.fromarray(view), size) for view in row] for row in np.ascontiguousarray(views)])
