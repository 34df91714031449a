"""3D Shapes (Burgess and Kim 2018) from its own file.

Shape letters: N observations, K factors, H height, W width, C channels.
"""

import math
from pathlib import Path

import numpy as np

from unweave.data.dataset import Dataset
from unweave.data.storage.array_store import Factors, grid_values, write_rows
from unweave.data.storage.download import RemoteFile
from unweave.data.storage.h5_file import h5_array
from unweave.data.storage.source import DataPath, open_files

REMOTE = RemoteFile(
    "3dshapes.h5",
    ("https://storage.googleapis.com/3d-shapes/3dshapes.h5",),
    267573662,
    "sha256:0a0f6ed98baff276a50f3a081a7434d788da63cb135a98189b2a5b5769be1785",
)
NAMES = ("floor_hue", "wall_hue", "object_hue", "scale", "shape", "orientation")
SHAPES = ("cube", "cylinder", "sphere", "capsule")


def shapes3d(*, path: DataPath = None) -> Dataset:
    """3D Shapes as published: an object in a coloured room, 480000 images of 64 x 64 in colour.

    `rooms` is a look-alike that needs no file. `path` is 3dshapes.h5.
    """
    return open_files("shapes3d", [REMOTE], path, {}, _read)


def _read(files: list[Path], folder: Path) -> Factors:
    import h5py

    with h5py.File(files[0], "r") as file:
        images, labels_NK = h5_array(file, "images"), h5_array(file, "labels")[()]
        count = len(images)
        if images.ndim != 4 or images.dtype != np.uint8 or labels_NK.shape != (count, len(NAMES)):
            raise ValueError(f"images {images.shape} and labels {labels_NK.shape} are not those of 3D Shapes")
        # labels are computed values; equal ones may differ in the last digit
        values = grid_values(labels_NK.round(6))
        rows = images.chunks[0] if images.chunks else 1
        step = (
            max(1, 60_000_000 // (rows * math.prod(images.shape[1:]))) * rows
        )  # whole chunks of the file, about 60 MB
        chunks = (images[start : start + step] for start in range(0, count, step))
        write_rows(folder / "pixels.npy", count, chunks, "shapes3d")
    shapes = tuple(SHAPES[int(value)] for value in values[4])
    return Factors(NAMES, (*values[:4], shapes, values[5]))
