"""Codes and factors from a file that any program can write: an .npz of numpy arrays."""

from __future__ import annotations

import zipfile
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from unweave.errors import UserError

KNOWN = ("codes", "factors", "names", "test_codes", "test_factors", "logvar")


class NpzArrays(NamedTuple):
    """What such a file may hold."""

    codes: NDArray[Any]  # [N, D]
    factors: NDArray[Any]  # [N, K]
    names: tuple[str, ...] | None = None  # of the factors [K]
    test: tuple[NDArray[Any], NDArray[Any]] | None = None  # codes and factors for what fits a predictor
    logvar: NDArray[Any] | None = None  # of the posteriors whose means are the codes [N, D]


def read_npz(path: str | Path) -> NpzArrays:
    """`codes` and `factors`, and if they are there `names`, `test_codes` with `test_factors`, and `logvar`.

    Nothing in the file is ever run: arrays of Python objects are refused.
    """
    found = _arrays(Path(path))
    for name in ("codes", "factors"):
        if name not in found:
            raise UserError(f"file '{path}' has no array '{name}' (there is {', '.join(found) or 'nothing'})")
    if ("test_codes" in found) != ("test_factors" in found):
        raise UserError(f"file '{path}' has only one of test_codes and test_factors; give both or none")
    names = _names(path, found["names"], found["factors"]) if "names" in found else None
    test = (found["test_codes"], found["test_factors"]) if "test_codes" in found else None
    return NpzArrays(found["codes"], found["factors"], names, test, found.get("logvar"))


def _arrays(path: Path) -> dict[str, NDArray[Any]]:
    if not path.is_file():
        raise UserError(f"file '{path}' is not there; give an .npz with arrays codes and factors, or a run folder")
    try:
        if not zipfile.is_zipfile(path):
            raise ValueError("it is no .npz; save codes and factors with numpy.savez")
        with np.load(path, allow_pickle=False) as file:
            return {name: file[name] for name in KNOWN if name in file.files}
    except (ValueError, EOFError, OSError, zipfile.BadZipFile) as error:
        why = "it holds Python objects" if "pickle" in str(error) else str(error).split("\n")[0]
        raise UserError(f"file '{path}' cannot be read as an .npz of plain arrays: {why}") from error


def _names(path: str | Path, names: NDArray[Any], factors: NDArray[Any]) -> tuple[str, ...]:
    if names.ndim != 1 or names.dtype.kind not in "US":
        raise UserError(f"file '{path}': names is {names.dtype} {names.shape}; accepted is a list of texts")
    told = tuple(name.decode("utf-8", "replace") if isinstance(name, bytes) else str(name) for name in names.tolist())
    if factors.ndim == 2 and len(told) != factors.shape[1]:
        raise UserError(f"file '{path}': names has {len(told)} entries but factors {factors.shape[1]} columns")
    return told
