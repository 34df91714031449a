"""Memory-mapped arrays: files of bytes written row by row.

A memory-mapped array is used like any other array or tensor. Its pages are read when a batch uses them, and the system
keeps as many of them in memory as fit.
"""

from __future__ import annotations

import io
import mmap
import os
import tempfile
from pathlib import Path

import numpy as np
import torch

_HEADER = 4096  # bytes before the first row; a multiple of the page size, so that rows of whole pages are aligned


def memory_limit() -> int:
    """Return the maximal bytes of a resident data set: half the memory of the GPU if there is one, else of the host."""
    if torch.cuda.is_available():
        return torch.cuda.mem_get_info()[1] // 2
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2
    except (ValueError, OSError, AttributeError):  # on Windows
        return 8 << 30


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

    def __enter__(self) -> MemmapWriter:
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
