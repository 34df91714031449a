"""Read arrays of .npy and .npz files without unpickling. Headers are compared with the bytes that follow them.

A file whose header states another size than it has, or more than fits into memory, is refused before anything is
allocated.
"""

import math
import os
import zipfile
import zlib
from collections.abc import Container, Iterator
from pathlib import Path
from typing import IO

import numpy as np

from unweave.data.storage.memory_limit import memory_limit

_BLOCK = 1 << 24  # bytes
_DAMAGES = (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError)  # the last: encrypted


class ObjectArrayError(ValueError):
    """An array of Python objects, which cannot be read without executing code."""


def _read_header(file: IO[bytes], name: str) -> tuple[tuple[int, ...], bool, np.dtype]:
    """Read shape, Fortran order and dtype of the array that follows in the stream."""
    try:
        version = np.lib.format.read_magic(file)
        read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
        shape, fortran_order, dtype = read(file)
    except ValueError as error:
        raise ValueError(f"array '{name}' has an invalid header ({error})") from error
    if dtype.hasobject:
        raise ObjectArrayError(f"array '{name}' contains Python objects")
    return shape, fortran_order, dtype


def array_header(file: IO[bytes], name: str) -> tuple[tuple[int, ...], np.dtype]:
    """Read the shape and dtype of the array that follows in the stream, whose rows are contiguous."""
    shape, fortran_order, dtype = _read_header(file, name)
    if fortran_order:
        raise ValueError(f"array '{name}' has an unsupported layout ({dtype}, Fortran order)")
    return shape, dtype


def _checked_header(file: IO[bytes], name: str, size: int) -> tuple[tuple[int, ...], bool, np.dtype]:
    """Read the header of an array in a file of `size` bytes; raise unless the array is all that follows."""
    shape, fortran_order, dtype = _read_header(file, name)
    found, stated = size - file.tell(), math.prod(shape) * dtype.itemsize
    if found != stated or min(shape, default=0) < 0:
        raise ValueError(f"array '{name}' has {found:,} bytes instead of the {stated:,} of its header {list(shape)}")
    return shape, fortran_order, dtype


def check_npy(path: Path) -> None:
    """Raise a ValueError unless an .npy file has exactly the bytes of its header."""
    with open(path, "rb") as file:
        _checked_header(file, path.name, os.fstat(file.fileno()).st_size)


def read_npz_arrays(
    path: Path, names: Container[str] | None = None, *, skip_objects: bool = False
) -> dict[str, np.ndarray]:
    """Return the arrays of an .npz file by name; other members and, with `skip_objects`, objects are left out.

    A ValueError describes a damaged file.
    """
    arrays: dict[str, np.ndarray] = {}
    with zipfile.ZipFile(path) as archive:
        for entry in archive.infolist():
            name = entry.filename.removesuffix(".npy")
            if name == entry.filename or (names is not None and name not in names):
                continue
            try:
                arrays[name] = _read_member(archive, entry, name)
            except ObjectArrayError:
                if not skip_objects:
                    raise
            except _DAMAGES as error:
                raise ValueError(f"array '{name}' is damaged ({error})") from error
    return arrays


def _read_member(archive: zipfile.ZipFile, entry: zipfile.ZipInfo, name: str) -> np.ndarray:
    with archive.open(entry) as file:
        shape, fortran_order, dtype = _checked_header(file, name, entry.file_size)
        needed = math.prod(shape) * dtype.itemsize
        if needed > memory_limit():
            raise ValueError(f"array '{name}' of {needed / 1e9:,.1f} GB does not fit into memory twice")
        array = np.empty(shape, dtype, order="F" if fortran_order else "C")
        content = (array.T if fortran_order else array).reshape(-1).view(np.uint8) if needed else np.empty(0, np.uint8)
        for start in range(0, needed, _BLOCK):
            block = file.read(min(_BLOCK, needed - start))
            content[start : start + len(block)] = np.frombuffer(block, np.uint8)
        file.read(1)  # at the end, where the checksum is compared
    return array


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
        file.read(1)  # at the end, where the checksum is compared


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
