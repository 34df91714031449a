"""MPI3D (Gondal et al. 2019) from its own files: a robot arm holding an object, rendered or photographed.

Shape letters: N observations, H height, W width, C channels.
"""

import math
import zipfile
from functools import partial
from pathlib import Path

import numpy as np

from unweave.data.dataset import Dataset
from unweave.data.storage.array_store import Factors, write_rows
from unweave.data.storage.download import RemoteFile
from unweave.data.storage.npz_arrays import iter_rows, shape_of
from unweave.data.storage.source import DataPath, open_files

Values = tuple[tuple[float | str, ...], ...]

NAMES = ("color", "shape", "size", "camera_height", "background", "horizontal", "vertical")
_HOME = "https://huggingface.co/datasets/waleedgondal/mpi3d/resolve/main/"
_OLD = "https://storage.googleapis.com/disentanglement_dataset/Final_Dataset/"
_DRIVE = "https://drive.usercontent.google.com/download?export=download&confirm=t&id="
_ARM = tuple(map(float, range(40)))
_COMMON: Values = (("small", "large"), ("top", "center", "bottom"), ("purple", "sea green", "salmon"), _ARM, _ARM)
_SIMPLE: Values = (
    ("white", "green", "red", "blue", "brown", "olive"),
    ("cone", "cube", "cylinder", "hexagonal", "pyramid", "sphere"),
)
_COMPLEX: Values = (("yellow", "green", "olive", "red"), ("coffee-cup", "tennis-ball", "croissant", "beer-cup"))
_FOUR: Values = (tuple(map(float, range(4))),) * 2  # first toy file: four unknown colours and shapes

# Checksums were published only for the files at the old address. The checksums inside the archive are verified.
REMOTES = {
    kind: RemoteFile(f"mpi3d_{kind}.npz", tuple(f"{home}mpi3d_{kind}.npz" for home in (_HOME, _OLD)))
    for kind in ("toy", "realistic", "real")
} | {"complex": RemoteFile("mpi3d_real_complex.npz", (f"{_DRIVE}1Tp8eTdHxgUMtsZv5uAoYAbJR1BOa_OQm",))}


def mpi3d_toy(*, path: DataPath = None) -> Dataset:
    """MPI3D toy: a robot arm holding an object, rendered simply, 1036800 images of 64 x 64 in colour."""
    return _load("toy", path)


def mpi3d_realistic(*, path: DataPath = None) -> Dataset:
    """MPI3D realistic: a robot arm holding an object, rendered finely, 1036800 images of 64 x 64 in colour."""
    return _load("realistic", path)


def mpi3d_real(*, path: DataPath = None) -> Dataset:
    """MPI3D real: photographs of a robot arm holding an object, 1036800 images of 64 x 64 in colour."""
    return _load("real", path)


def mpi3d_complex(*, path: DataPath = None) -> Dataset:
    """MPI3D complex: photographs of a robot arm holding everyday objects, 460800 images of 64 x 64 in colour."""
    return _load("complex", path)


def _load(kind: str, path: DataPath) -> Dataset:
    return open_files(f"mpi3d_{kind}", [REMOTES[kind]], path, {}, partial(_read, kind))


def _read(kind: str, files: list[Path], folder: Path) -> Factors:
    with zipfile.ZipFile(files[0]) as archive:
        shape, dtype = shape_of(archive, "images")
        if len(shape) != 4 or shape[3] != 3 or dtype != np.uint8:
            raise ValueError(f"array 'images' is {dtype} {shape}, not bytes [N, H, W, 3]")
        values = _values(kind, shape[0])
        rows = max(1, 50_000_000 // math.prod(shape[1:]))
        write_rows(folder / "pixels.npy", shape[0], iter_rows(archive, "images", rows), f"mpi3d_{kind}")
    return Factors(NAMES, values)


def _values(kind: str, count: int) -> Values:
    """Return the factor values, which follow from the number of images; the file does not contain them."""
    possible = {"complex": [_COMPLEX], "toy": [_SIMPLE, _FOUR]}.get(kind, [_SIMPLE])
    found = {math.prod(map(len, (*head, *_COMMON))): (*head, *_COMMON) for head in possible}
    if count not in found:
        raise ValueError(f"it has {count} images, mpi3d_{kind} has {' or '.join(map(str, found))}")
    return found[count]
