"""Read arrays of an .npz archive in chunks of rows, without unpickling and without loading the whole array."""

import zipfile
from collections.abc import Iterator
from typing import IO

import numpy as np


def array_header(file: IO[bytes], name: str) -> tuple[tuple[int, ...], np.dtype]:
    """Read the shape and dtype of the array that follows in the stream."""
    version = np.lib.format.read_magic(file)
    read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
    shape, fortran_order, dtype = read(file)
    if dtype.hasobject or fortran_order:
        raise ValueError(f"array '{name}' has an unsupported layout ({dtype}, Fortran order {fortran_order})")
    return shape, dtype


def iter_rows(archive: zipfile.ZipFile, name: str, rows: int) -> Iterator[np.ndarray]:
    """Yield the array in chunks of `rows` rows."""
    with archive.open(f"{name}.npy") as file:
        shape, dtype = array_header(file, name)
        width = int(np.prod(shape[1:])) * dtype.itemsize
        for start in range(0, shape[0], rows):
            count = min(rows, shape[0] - start)
            content = file.read(count * width)
            if len(content) != count * width:
                raise ValueError(f"array '{name}' ends before its {shape[0]} rows")
            yield np.frombuffer(content, dtype).reshape(count, *shape[1:])


def shape_of(archive: zipfile.ZipFile, name: str) -> tuple[tuple[int, ...], np.dtype]:
    """Return the shape and dtype of an array of the archive."""
    if f"{name}.npy" not in archive.namelist():
        names = ", ".join(entry.removesuffix(".npy") for entry in archive.namelist()[:8])
        raise ValueError(f"it has no array '{name}', only {names}")
    with archive.open(f"{name}.npy") as file:
        return array_header(file, name)


def read_array(archive: zipfile.ZipFile, name: str) -> np.ndarray:
    """Read a whole array."""
    shape, _ = shape_of(archive, name)
    return np.concatenate(list(iter_rows(archive, name, max(1, shape[0]))))
