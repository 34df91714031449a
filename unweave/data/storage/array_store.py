"""Arrays converted once from a published file and stored in the cache as memory-mapped .npy files.

Memory-mapped arrays need no time to load and no memory until they are read, and may be larger than memory.
"""

import json
import math
import os
import shutil
import tempfile
from collections.abc import Callable, Iterable
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch

from unweave.data.storage.cache import cache_dir, cache_error, cache_lock
from unweave.data.storage.digest import hash_tensor, mapped_file
from unweave.data.storage.memmap import MemmapWriter, open_memmap
from unweave.data.storage.progress import progress_task

_FACTORS = "factors.json"


class Factors(NamedTuple):
    """Names of the factors and the value of each of their classes."""

    names: tuple[str, ...]
    values: tuple[tuple[float | str, ...], ...]


class StoredArrays(NamedTuple):
    arrays: dict[str, np.ndarray]
    factors: Factors


def load_or_build(key: str, build: Callable[[Path], Factors]) -> StoredArrays:
    """Return the arrays with this key. On first use `build` writes them as .npy files into the folder it is given."""
    home = cache_dir() / "files"
    if (stored := _read_if_intact(home / key)) is not None:
        return stored
    with cache_lock(key):
        if (stored := _read_if_intact(home / key)) is not None:  # another process has made it meanwhile
            return stored
        try:
            home.mkdir(parents=True, exist_ok=True)
            fresh = Path(tempfile.mkdtemp(dir=home, prefix=f".{key}."))
        except OSError:  # the cache is not writable: the arrays exist as long as the process
            with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
                return _build(Path(folder), build)
        try:
            for array in _build(fresh, build).arrays.values():
                hash_tensor(torch.from_numpy(array), file=mapped_file(array), name=key)  # stored beside the array
            _publish(fresh, home / key)
        finally:
            shutil.rmtree(fresh, ignore_errors=True)
        return _read(home / key)


def _publish(fresh: Path, target: Path) -> None:
    """Give a complete folder its name, unless an intact one has it: other processes may have mapped its arrays."""
    try:
        os.rename(fresh, target)  # in one step, so that the key never refers to an incomplete folder
        return
    except OSError:
        if _read_if_intact(target) is not None:
            return
    damaged = fresh.with_name(f"{fresh.name}.damaged")
    with suppress(OSError):
        os.rename(target, damaged)
    os.rename(fresh, target)
    shutil.rmtree(damaged, ignore_errors=True)


def _read_if_intact(folder: Path) -> StoredArrays | None:
    try:
        return _read(folder)
    except Exception:  # absent or damaged
        return None


def _build(folder: Path, build: Callable[[Path], Factors]) -> StoredArrays:
    try:
        factors = build(folder)
        (folder / _FACTORS).write_text(json.dumps(factors._asdict()))
        return _read(folder)
    except OSError as error:
        raise cache_error(folder.parent, error) from error


def _read(folder: Path) -> StoredArrays:
    stored = json.loads((folder / _FACTORS).read_text())
    factors = Factors(tuple(stored["names"]), tuple(tuple(values) for values in stored["values"]))
    arrays = {path.stem: open_memmap(path) for path in folder.glob("*.npy")}
    if not arrays:
        raise FileNotFoundError(folder / "*.npy")
    return StoredArrays(arrays, factors)


def write_rows(path: Path, rows: int, chunks: Iterable[np.ndarray], name: str) -> None:
    """Write an .npy file of `rows` rows of bytes in chunks [n, ...]; only one chunk is in memory at a time."""
    with MemmapWriter(path) as writer, progress_task(f"converting {name}", rows, "") as update:
        for chunk in chunks:
            writer.add(chunk)
            update(writer.rows)
        if writer.rows != rows or not rows:
            raise ValueError(f"it contains {writer.rows or 'no'} images instead of the {rows} in its header")


def in_chunks(images: Iterable[np.ndarray], size: int = 256) -> Iterable[np.ndarray]:
    """Stack single images to chunks."""
    iterator = iter(images)
    while chunk := list(islice(iterator, size)):
        yield np.stack(chunk)


def grid_values(table_NK: np.ndarray) -> tuple[tuple[float, ...], ...]:
    """Return the values of each factor; raise unless the rows are all combinations, the last factor varying fastest."""
    found = [np.unique(column, return_inverse=True) for column in table_NK.T]
    sizes = tuple(len(values) for values, _ in found)
    if math.prod(sizes) != len(table_NK):
        raise ValueError(f"its {len(table_NK)} rows are not every combination of factors of sizes {sizes}")
    for (_, classes), expected in zip(found, np.unravel_index(np.arange(len(table_NK)), sizes), strict=True):
        if not np.array_equal(classes.ravel(), expected):
            raise ValueError("its rows are not in the order of the factors, the last one varying fastest")
    return tuple(tuple(map(float, values)) for values, _ in found)
