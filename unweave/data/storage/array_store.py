"""Arrays made once from a published file and read from then on: .npy files of the cache, mapped into memory.

Mapped arrays cost no time to load and no memory until they are read, and may be larger than memory.
"""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import NamedTuple

import numpy as np

from unweave.data.storage.cache import cache_dir
from unweave.data.storage.memmap import open_memmap
from unweave.data.storage.progress import progress_task
from unweave.errors import UserError

_FACTORS = "factors.json"


class Factors(NamedTuple):
    """What the factors are called and what each of their classes stands for."""

    names: tuple[str, ...]
    values: tuple[tuple[float | str, ...], ...]


class StoredArrays(NamedTuple):
    arrays: dict[str, np.ndarray]
    factors: Factors


def load_or_build(key: str, make: Callable[[Path], Factors]) -> StoredArrays:
    """The arrays under this key. On first use `make` writes them, as .npy files, into the folder it is given."""
    home = cache_dir() / "files"
    try:
        return _read(home / key)
    except Exception:  # absent, truncated or not ours
        pass
    try:
        home.mkdir(parents=True, exist_ok=True)
        fresh = Path(tempfile.mkdtemp(dir=home, prefix=f".{key}."))
    except OSError:  # a cache that cannot be written is no error: the arrays then live as long as the process
        with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
            return _made(Path(folder), make)
    try:
        _made(fresh, make)
        _move(fresh, home / key)
    finally:
        shutil.rmtree(fresh, ignore_errors=True)
    return _read(home / key)


def _made(folder: Path, make: Callable[[Path], Factors]) -> StoredArrays:
    try:
        factors = make(folder)
        (folder / _FACTORS).write_text(json.dumps(factors._asdict()))
        return _read(folder)
    except OSError as error:
        raise UserError(
            f"cache folder '{folder.parent}' cannot be written ({error.strerror or error}); "
            "make room, or set UNWEAVE_CACHE to another folder"
        ) from error


def _move(fresh: Path, final: Path) -> None:
    """Renamed in one step, so that no half-made folder is ever found under the key."""
    try:
        os.rename(fresh, final)
    except OSError:  # a damaged one is in the way, or that of another process that was quicker
        shutil.rmtree(final, ignore_errors=True)
        os.rename(fresh, final)


def _read(folder: Path) -> StoredArrays:
    told = json.loads((folder / _FACTORS).read_text())
    factors = Factors(tuple(told["names"]), tuple(tuple(values) for values in told["values"]))
    return StoredArrays({path.stem: open_memmap(path) for path in folder.glob("*.npy")}, factors)


def write_rows(path: Path, rows: int, chunks: Iterable[np.ndarray], what: str) -> None:
    """One .npy file of `rows` rows, written chunk after chunk [n, ...]: all of them never lie in memory."""
    if rows < 1:
        raise ValueError("it holds no pictures")
    done = 0
    with open(path, "wb") as file, progress_task(f"converting {what}", rows, "") as step:
        for chunk in chunks:
            if not done:
                head = {"descr": chunk.dtype.str, "fortran_order": False, "shape": (rows, *chunk.shape[1:])}
                np.lib.format.write_array_header_1_0(file, head)
            file.write(np.ascontiguousarray(chunk).data)
            done += len(chunk)
            step(done)
    if done != rows:
        raise ValueError(f"it holds {done} of the {rows} pictures it announces")


def in_chunks(pictures: Iterable[np.ndarray], size: int = 256) -> Iterable[np.ndarray]:
    """Single pictures gathered into chunks."""
    gathered: list[np.ndarray] = []
    for picture in pictures:
        gathered.append(picture)
        if len(gathered) == size:
            yield np.stack(gathered)
            gathered = []
    if gathered:
        yield np.stack(gathered)


def grid_values(table_NK: np.ndarray) -> tuple[tuple[float, ...], ...]:
    """The values of each factor, if the rows are every combination of them once, the last factor fastest."""
    found = [np.unique(column, return_inverse=True) for column in table_NK.T]
    sizes = tuple(len(values) for values, _ in found)
    if np.prod(sizes) != len(table_NK):
        raise ValueError(f"its {len(table_NK)} rows are not every combination of factors of sizes {sizes}")
    for (_, classes), expected in zip(found, np.unravel_index(np.arange(len(table_NK)), sizes), strict=True):
        if not np.array_equal(classes.ravel(), expected):
            raise ValueError("its rows are not in the order of the factors, the last one fastest")
    return tuple(tuple(map(float, values)) for values, _ in found)


def grid_order(table_NK: np.ndarray) -> np.ndarray:
    """The order of rows that makes a grid of them, where every combination of factors is there once."""
    order = np.lexsort(table_NK.T[::-1])
    grid_values(table_NK[order])
    return order
