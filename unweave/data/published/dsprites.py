"""dSprites (Matthey et al. 2017) from its own file, .npz or .hdf5.

Shape letters: N observations, K factors, H height, W width.
"""

import zipfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from unweave.data.dataset import Dataset
from unweave.data.storage.array_store import Factors, grid_values, write_rows
from unweave.data.storage.download import RemoteFile
from unweave.data.storage.h5_file import h5_array
from unweave.data.storage.npz_arrays import iter_rows, read_array, shape_of
from unweave.data.storage.source import DataPath, open_files

_FILE = "dsprites_ndarray_co1sh3sc6or40x32y32_64x64.npz"
REMOTE = RemoteFile(
    _FILE,
    (f"https://github.com/google-deepmind/dsprites-dataset/raw/master/{_FILE}",),
    digest="git:d98996d3f8ee1550e06b9d4ed78d0beb478910d5",
)
NAMES = ("color", "shape", "scale", "orientation", "posX", "posY")
_ROWS = 512  # read at a time: 2 MB
_HDF5_ROWS = 23040  # rows of a chunk of the .hdf5; reading fewer decompresses a chunk several times


def dsprites(*, path: DataPath = None) -> Dataset:
    """dSprites as published: a white square, ellipse or heart on black, 737280 images of 64 x 64.

    The same images, factors and order as `sprites`, which needs no file. `path` is the .npz or .hdf5.
    """
    return open_files("dsprites", [REMOTE], path, {}, _read)


def _read(files: list[Path], folder: Path) -> Factors:
    import h5py

    if h5py.is_hdf5(files[0]):
        with h5py.File(files[0], "r") as file:
            images = h5_array(file, "imgs")
            classes_NK, values_NK = (h5_array(file, f"latents/{kind}")[()] for kind in ("classes", "values"))
            chunks = (images[start : start + _HDF5_ROWS] for start in range(0, len(images), _HDF5_ROWS))
            return _pack(images.shape, chunks, classes_NK, values_NK, folder)
    with zipfile.ZipFile(files[0]) as archive:  # the pickled `metadata` is not read
        shape, _ = shape_of(archive, "imgs")
        classes_NK, values_NK = (read_array(archive, f"latents_{kind}") for kind in ("classes", "values"))
        return _pack(shape, iter_rows(archive, "imgs", _ROWS), classes_NK, values_NK, folder)


def _pack(
    shape: tuple[int, ...], chunks: Iterator[np.ndarray], classes_NK: np.ndarray, values_NK: np.ndarray, folder: Path
) -> Factors:
    """Store eight pixels per byte. The constant colour is not used as a factor."""
    if len(shape) != 3 or shape[2] % 8 or {classes_NK.shape, values_NK.shape} != {(shape[0], len(NAMES))}:
        raise ValueError(f"images {shape}, classes {classes_NK.shape} and values {values_NK.shape} do not match")
    values = _values(classes_NK, values_NK)
    write_rows(folder / "bits.npy", shape[0], (np.packbits(chunk, axis=-1) for chunk in chunks), "dsprites")
    return Factors(NAMES[1:], values)


def _values(classes_NK: np.ndarray, values_NK: np.ndarray) -> tuple[tuple[float, ...], ...]:
    """Return the values of the classes; raise unless they are a grid in which each class has one value."""
    sizes = tuple(map(len, grid_values(classes_NK)))
    if sizes[0] != 1:
        raise ValueError(f"factor 'color' has {sizes[0]} values instead of one")
    found = grid_values(values_NK)
    if tuple(map(len, found)) != sizes:
        raise ValueError("its classes and values are of different factors")
    return found[1:]
