"""Memory-mapped arrays: files of bytes written in chunks of rows and read row by row.

A memory-mapped array is used like any other array or tensor. Its pages are read when a batch uses them, and the system
keeps as many of them in memory as fit.

Shape letters: B rows of a batch.
"""

import ctypes
import io
import mmap
import os
import tempfile
from functools import cache
from pathlib import Path
from typing import Any, Self

import numpy as np
from torch import Tensor

_HEADER = 4096  # bytes before the first row; a multiple of the page size, so that rows of whole pages are aligned


def open_memmap(path: Path) -> np.ndarray:
    """Open the array of an .npy file without reading it. Writing to it changes memory only, not the file."""
    array = np.load(path, mmap_mode="c", allow_pickle=False)
    pages = getattr(array, "_mmap", None)
    # Rows are read in random order, so reading ahead after each of them is of no use.
    if pages is not None and hasattr(mmap, "MADV_RANDOM"):
        pages.madvise(mmap.MADV_RANDOM)
    return array


class MemmapWriter:
    """Write an .npy file of rows of bytes in chunks [n, ...]; it gets its name at the end and is deleted on error."""

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self.path, self.rows = path, 0
        self.row_shape: tuple[int, ...] = ()
        self.file = tempfile.NamedTemporaryFile(dir=path.parent, prefix=f".{path.name}.", delete=False)  # noqa: SIM115
        self.file.write(bytes(_HEADER))

    def add(self, chunk: np.ndarray) -> None:
        self.row_shape, self.rows = chunk.shape[1:], self.rows + len(chunk)
        self.file.write(np.ascontiguousarray(chunk, dtype=np.uint8).data)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        try:
            if kind is None:
                self.file.seek(0)
                self.file.write(_header((self.rows, *self.row_shape)))
                self.file.flush()
                os.fsync(self.file.fileno())
                os.chmod(self.file.name, 0o644)
                os.replace(self.file.name, self.path)
        finally:
            self.file.close()
            Path(self.file.name).unlink(missing_ok=True)


def _header(shape: tuple[int, ...]) -> bytes:
    """Return the header of a version 1.0 .npy file of bytes, padded to a fixed length to be written last."""
    buffer = io.BytesIO()
    np.lib.format.write_array_header_1_0(buffer, {"descr": "|u1", "fortran_order": False, "shape": shape})
    text = buffer.getvalue()[10:].rstrip()
    return b"\x93NUMPY\x01\x00" + (_HEADER - 10).to_bytes(2, "little") + text.ljust(_HEADER - 11) + b"\n"


@cache
def system_madvise() -> Any:
    """Return the C function, or None if the system has none."""
    try:
        function = ctypes.CDLL(None).madvise
    except (OSError, AttributeError, TypeError):  # TypeError on Windows
        return None
    function.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)
    return function


def request_rows(store: Tensor, index_B: Tensor) -> None:
    """Ask the system to read these rows of a store on the host.

    Otherwise each page is read when it is first used, and a thread waits for the disk for each of them.
    """
    madvise = system_madvise()
    if madvise is None:
        return
    try:
        rows_B = index_B.numpy().astype(np.int64)
    except (RuntimeError, TypeError):  # the index is being traced or vmapped
        return
    page, length = mmap.PAGESIZE, store.stride(0) * store.element_size()
    start_B = store.data_ptr() + rows_B * length
    first_B = start_B // page * page
    bytes_B = -((start_B + length) // -page) * page - first_B
    for first, count in zip(first_B.tolist(), bytes_B.tolist(), strict=True):
        madvise(first, count, mmap.MADV_WILLNEED)


def request_bytes(block: np.ndarray) -> None:
    """Ask the system to read a contiguous block of a memory-mapped array at once."""
    madvise = system_madvise()
    if madvise is not None and block.flags.c_contiguous:
        first = block.ctypes.data // mmap.PAGESIZE * mmap.PAGESIZE
        madvise(first, block.ctypes.data + block.nbytes - first, mmap.MADV_WILLNEED)


def select_rows(store: Tensor, index_B: Tensor, *, resident: bool) -> Tensor:
    """Return rows of a store, on the device of the index; a store that is not resident is on the host."""
    flat = index_B.flatten()
    if resident:
        return store.index_select(0, flat).unflatten(0, index_B.shape)
    host = flat.cpu()
    request_rows(store, host)
    # index_select copies whole rows, which is five times as fast on a CPU as indexing
    return store.index_select(0, host).to(index_B.device).unflatten(0, index_B.shape)
