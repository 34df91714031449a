"""NumPy .npz archives: images, factors and names of factors by name."""

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from unweave.data.user.formats.array_format import ArrayFormat, Arrays


def _read(path: Path, memmap: bool) -> Arrays:
    """Return the arrays; those of Python objects, as in the metadata of some published files, are left out.

    Other files in the archive are left out too; NumPy returns them as bytes.
    """
    arrays = {}
    with open(path, "rb") as file, np.load(file, allow_pickle=False) as archive:
        for name in archive:
            try:
                array = archive[name]
            except ValueError:
                continue
            if isinstance(array, np.ndarray):
                arrays[name] = array
    return arrays


def _write_example(path: Path, arrays: Mapping[str, np.ndarray]) -> None:
    np.savez(path, **arrays)  # type: ignore[arg-type]


FORMAT = ArrayFormat(
    suffixes=(".npz",),
    signature=b"PK",
    help="arrays by name, as written by numpy.savez: images and optionally factors",
    read=_read,
    write_example=_write_example,
)
