"""Reading arrays out of an .npz archive row by row, without unpickling anything and without holding all of it."""

from __future__ import annotations

import zipfile
from collections.abc import Iterator
from typing import IO

import numpy as np


def array_header(file: IO[bytes], name: str) -> tuple[tuple[int, ...], np.dtype]:
    """Shape and type of the array that follows in the stream."""
    version = np.lib.format.read_magic(file)
    read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
    shape, fortran_order, dtype = read(file)
    if dtype.hasobject or fortran_order:
        raise ValueError(f"array '{name}' has a form that is not read ({dtype}, Fortran order {fortran_order})")
    return shape, dtype


def iter_rows(archive: zipfile.ZipFile, name: str, rows: int) -> Iterator[np.ndarray]:
    """The array in chunks of so many rows."""
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
    if f"{name}.npy" not in archive.namelist():
        there = ", ".join(entry.removesuffix(".npy") for entry in archive.namelist()[:8])
        raise ValueError(f"it has no array '{name}' (there are {there})")
    with archive.open(f"{name}.npy") as file:
        return array_header(file, name)


def read_array(archive: zipfile.ZipFile, name: str) -> np.ndarray:
    """A whole array, for small ones."""
    shape, _ = shape_of(archive, name)
    return np.concatenate(list(iter_rows(archive, name, max(1, shape[0]))))
