"""Select rows of a memory-mapped file, asking the system to read all of them ahead.

Without the request each page is read when it is first touched, one after the other, and a thread waits for the disk
for each of them. The request is advice: where `madvise` does not exist, rows are read without it.

Shape letters: B rows of a batch.
"""

from __future__ import annotations

import ctypes
import mmap
import sys
from functools import cache
from typing import Any

import numpy as np
from torch import Tensor


@cache
def _madvise() -> Any:
    """Return the C function, or None if the system has none."""
    if sys.platform == "win32":
        return None
    try:
        function = ctypes.CDLL(None).madvise
    except (OSError, AttributeError):
        return None
    function.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)
    return function


def request_rows(store: Tensor, index_B: Tensor) -> None:
    """Ask the system to read these rows of a store on the host."""
    madvise = _madvise()
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


def select_rows(store: Tensor, index_B: Tensor, *, resident: bool) -> Tensor:
    """Return rows of a store, on the device of the index; a store that is not resident is on the host."""
    flat = index_B.flatten()
    if resident:
        return store.index_select(0, flat).unflatten(0, index_B.shape)
    host = flat.cpu()
    request_rows(store, host)
    # index_select copies whole rows, which is five times as fast on a CPU as indexing
    return store.index_select(0, host).to(index_B.device).unflatten(0, index_B.shape)
