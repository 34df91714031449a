"""Hashes by which a run recognises its data.

Arrays are hashed in blocks of rows, in threads; only a few blocks are in memory at a time. A hash is one of the shape,
the dtype and the values in C order, so that equal arrays have equal hashes whatever their layout in memory. The hash
of an array in a file is stored in the cache together with the state of the file.

Shape letters: B rows of a block.
"""

import hashlib
import json
import os
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext, suppress
from numbers import Integral, Real
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from torch import Tensor

from unweave.data.storage.cache import cache_dir
from unweave.data.storage.memmap import request_bytes
from unweave.data.storage.progress import progress_task
from unweave.runs import write_atomic

TIME_LIMIT = 60.0  # seconds; data whose hash is estimated to take longer are sampled
SAMPLED = "sampled"  # last part of the digest of sampled data
SAMPLED_NOTE = "the data were identified by a sample of their pixels"
_BLOCK = 4 << 20  # bytes of a block of rows
_GROUP = 16  # blocks between two updates of the progress
_SAMPLE_ROWS, _SAMPLE_BYTES = (64, 4096), 1 << 30  # smallest and largest number of sampled rows; bytes of all of them
_SHOWN = 1 << 30  # bytes from which on progress is shown

FileState = tuple[int, int, int, int]
Rows = slice | np.ndarray
ReadRows = Callable[[Rows], np.ndarray]


class Hash(NamedTuple):
    """A hash of an array; `sampled` if not all of its rows were read."""

    text: str
    sampled: bool = False


class FilePart(NamedTuple):
    """The part of a file that an array was read from or mapped to, unchanged."""

    path: Path
    state: FileState  # before it was read
    part: str  # which part of the file, and its form


def file_state(stat: os.stat_result) -> FileState:
    """Return what changes if a file is written or replaced: inode, bytes, and the times of content and status."""
    return stat.st_ino, stat.st_size, stat.st_mtime_ns, stat.st_ctime_ns


def mapped_file(array: np.ndarray) -> FilePart | None:
    """Return the file behind a memory-mapped array; None if the array is in memory."""
    path = getattr(array, "filename", None)
    if path is None:
        return None
    root = array
    while isinstance(root.base, np.ndarray):
        root = root.base
    start = getattr(root, "offset", 0) + array.ctypes.data - root.ctypes.data
    try:
        return file_part(Path(path), file_state(os.stat(path)), str(start), array)
    except OSError:  # the file was deleted
        return None


def file_part(path: Path, state: FileState, name: str, array: np.ndarray) -> FilePart:
    """Return the part of a file that has this name and the layout of the array."""
    return FilePart(path, state, str((name, array.shape, array.strides, array.dtype.str)))


def tensor_version(tensor: Tensor) -> int:
    """Return how often a tensor was changed in place."""
    return 0 if tensor.is_inference() else tensor._version


def hash_text(content: Any) -> str:
    """Return the hash of nested sequences and mappings of texts and numbers; 1 equals 1.0."""
    return hashlib.sha256(json.dumps(_canonical(content), sort_keys=True).encode()).hexdigest()[:32]


def _canonical(value: Any) -> Any:
    if isinstance(value, np.ndarray | Tensor):
        value = value.tolist()
    if isinstance(value, Mapping):
        return {str(name): _canonical(entry) for name, entry in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [_canonical(entry) for entry in value]
    if isinstance(value, Integral) and not isinstance(value, bool):
        return int(value)
    if isinstance(value, Real) and not isinstance(value, bool):
        number = float(value)
        return int(number) if number.is_integer() else number
    return value if value is None or isinstance(value, bool) else str(value)


def hash_tensor(
    tensor: Tensor, *, file: FilePart | None = None, sampled: bool | None = None, name: str = "data"
) -> Hash:
    """Return the hash of a tensor on any device, read from the cache if its file has not changed.

    `sampled` is True for a hash of a sample of the rows, False for one of all rows, None to decide by the time.
    """
    file = None if tensor_version(tensor) else file  # the tensor differs from the file
    known = _stored_hash(file)
    if known is not None and sampled in (None, known.sampled):
        return known
    found = _hash_tensor(tensor, file, sampled, name)
    if file is not None and sampled is not True:
        _store_hash(file, found)
    return found


def _hash_tensor(tensor: Tensor, file: FilePart | None, sampled: bool | None, name: str) -> Hash:
    array = tensor.numpy() if tensor.device.type == "cpu" else None
    row_bytes = max(1, tensor[:1].numel() * tensor.element_size())
    head = [str(tensor.dtype).removeprefix("torch."), list(tensor.shape)]

    def read(rows: Rows) -> np.ndarray:
        if array is None:
            return tensor[rows].cpu().contiguous().numpy()
        if file is not None and isinstance(rows, slice):
            request_bytes(array[rows])
        return np.ascontiguousarray(array[rows])

    return hash_rows(read, len(tensor), row_bytes, head, sampled=sampled, name=name)


def hash_rows(
    read: ReadRows,
    rows: int,
    row_bytes: int,
    head: Sequence[Any] = (),
    *,
    sampled: bool | None = None,
    name: str = "data",
    parallel: bool = True,
) -> Hash:
    """Return the hash of `rows` rows, of which `read` returns those of a slice or of an array of indices.

    `head` is hashed as well; `sampled` is as in `hash_tensor`. With `parallel`, `read` is called from threads.
    """
    count = max(1, _BLOCK // row_bytes)
    if not sampled:
        blocks: list[Rows] = [slice(start, min(start + count, rows)) for start in range(0, rows, count)]
        limit, workers = TIME_LIMIT if sampled is None else float("inf"), _workers() if parallel else 1
        digests = _hash_blocks(read, blocks, workers, limit, (name, rows, row_bytes * rows))
        if digests is not None:
            return Hash(hash_text([*head, rows, digests]))
    chosen = sampled_rows(rows, row_bytes)
    blocks = [chosen[start : start + count] for start in range(0, len(chosen), count)]
    return Hash(hash_text([*head, rows, [_hash_block(read, block) for block in blocks]]), sampled=True)


def sampled_rows(rows: int, row_bytes: int) -> np.ndarray:
    """Return the indices of evenly spread rows, including the first and the last one."""
    least, most = _SAMPLE_ROWS
    return np.unique(np.linspace(0, rows - 1, max(least, min(most, _SAMPLE_BYTES // row_bytes))).astype(np.int64))


def _hash_blocks(
    read: ReadRows, blocks: Sequence[Rows], workers: int, limit: float, shown: tuple[str, int, int]
) -> list[str] | None:
    """Return the hash of each block, or None once all of them are estimated to take more than `limit` seconds."""
    name, rows, total_bytes = shown
    progress = (
        progress_task(f"hashing {name}", rows, " rows") if total_bytes > _SHOWN else nullcontext(lambda done: None)
    )
    digests: list[str] = []
    with ThreadPoolExecutor(workers) as threads, progress as update:
        began = time.monotonic()
        for start in range(0, len(blocks), _GROUP):
            digests += threads.map(lambda block: _hash_block(read, block), blocks[start : start + _GROUP])
            update(rows * len(digests) // len(blocks))
            elapsed = time.monotonic() - began
            # the first blocks may have to wait for a disk, so the estimate needs a second
            if elapsed >= min(1.0, limit) and elapsed * len(blocks) / len(digests) >= limit:
                return None
    return digests


def _hash_block(read: ReadRows, rows: Rows) -> str:
    # of the hashes in hashlib, sha256 is the fastest but sha1 on processors with instructions for it: 2 GB/s per thread
    return hashlib.sha256(read(rows).reshape(-1).view(np.uint8).data).hexdigest()


def _workers() -> int:
    try:
        available = len(os.sched_getaffinity(0))
    except AttributeError:  # not on Linux
        available = os.cpu_count() or 1
    return min(8, available)


# --- hashes of files, stored in the cache -----------------------------------------------------------------------------


def _entry(file: FilePart) -> Path:
    """Return the path of the stored hash: beside a file of the cache, in the folder `digests` for other files."""
    if file.path.is_relative_to(cache_dir()):
        return file.path.with_suffix(".digest")
    return cache_dir() / "digests" / f"{hash_text(str(file.path.absolute()))}.json"


def _stored_hash(file: FilePart | None) -> Hash | None:
    """Return the stored hash of a file in this state."""
    if file is None:
        return None
    try:
        stored = json.loads(_entry(file).read_text())
        if stored["state"] == list(file.state) and stored["part"] == file.part:
            return Hash(str(stored["hash"]), bool(stored["sampled"]))
    except (OSError, ValueError, KeyError, TypeError):  # absent or damaged
        pass
    return None


def _store_hash(file: FilePart, found: Hash) -> None:
    """Store a hash, unless the file has changed meanwhile or the cache is not writable."""
    with suppress(OSError):
        if file_state(os.stat(file.path)) != file.state:
            return
        path = _entry(file)
        path.parent.mkdir(parents=True, exist_ok=True)
        stored = {"state": file.state, "part": file.part, "hash": found.text, "sampled": found.sampled}
        write_atomic(path, json.dumps(stored).encode())


# --- comparing digests ------------------------------------------------------------------------------------------------


def join_digest(size: int, images: Hash, factors: Hash) -> str:
    """Return the text COUNT-IMAGES-FACTORS of a data set, with -sampled if a part was sampled."""
    return "-".join([str(size), images.text, factors.text, *[SAMPLED] * (images.sampled or factors.sampled)])


def digest_size(digest: str) -> int:
    """Return the number of observations of the data with this digest."""
    count = digest.split("-")[0]
    return int(count) if count.isdecimal() else 0


def is_sampled(digest: str) -> bool:
    """Return True if not all pixels were read for this digest."""
    return digest.endswith(f"-{SAMPLED}")


def changed_parts(then: str, now: str) -> tuple[str, ...]:
    """Return which of "images" and "factors" differ between two digests of the same form."""
    parts = zip(("images", "images", "factors"), then.split("-"), now.split("-"), strict=False)
    return tuple(dict.fromkeys(part for part, before, after in parts if before != after)) if then != now else ()
