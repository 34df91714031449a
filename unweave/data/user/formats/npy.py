"""NumPy .npy files: one array of images."""

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from unweave.data.storage.memmap import open_memmap
from unweave.data.storage.npz_arrays import check_npy
from unweave.data.user.formats.array_format import ArrayFormat, Arrays


def _read(path: Path, memmap: bool) -> Arrays:
    check_npy(path)
    return {"images": open_memmap(path) if memmap else np.load(path, allow_pickle=False)}


def _write_example(path: Path, arrays: Mapping[str, np.ndarray]) -> None:
    np.save(path, arrays["images"])


FORMAT = ArrayFormat(
    suffixes=(".npy",),
    signature=b"\x93NUMPY",
    help="one array of images, as written by numpy.save",
    read=_read,
    write_example=_write_example,
)
