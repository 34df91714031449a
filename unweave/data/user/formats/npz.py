"""NumPy .npz archives: images, factors and names of factors by name."""

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from unweave.data.storage.npz_arrays import read_npz_arrays
from unweave.data.user.formats.array_format import ArrayFormat, Arrays


def _read(path: Path, memmap: bool) -> Arrays:
    """Return the arrays; Python objects, as in the metadata of some published files, and other files are left out."""
    return read_npz_arrays(path, skip_objects=True)


def _write_example(path: Path, arrays: Mapping[str, np.ndarray]) -> None:
    np.savez(path, **arrays)  # type: ignore[arg-type]


FORMAT = ArrayFormat(
    suffixes=(".npz",),
    signature=b"PK",
    help="arrays by name, as written by numpy.savez: images and optionally factors",
    read=_read,
    write_example=_write_example,
)
