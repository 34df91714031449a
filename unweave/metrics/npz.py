"""Read codes and factors from an .npz file of numpy arrays."""

import zipfile
from pathlib import Path
from typing import Any, NamedTuple

from numpy.typing import NDArray

from unweave.data.storage.npz_arrays import read_npz_arrays
from unweave.errors import UserError

KNOWN = ("codes", "factors", "names", "test_codes", "test_factors", "logvar")


class NpzArrays(NamedTuple):
    """The arrays of such a file."""

    codes: NDArray[Any]  # [N, D]
    factors: NDArray[Any]  # [N, K]
    names: tuple[str, ...] | None = None  # of the factors [K]
    test: tuple[NDArray[Any], NDArray[Any]] | None = None  # codes and factors to test predictors on
    logvar: NDArray[Any] | None = None  # of the posteriors whose means are the codes [N, D]


def read_npz(path: str | Path) -> NpzArrays:
    """Return `codes` and `factors`, and the optional `names`, `test_codes` with `test_factors`, and `logvar`.

    Loading never executes code: arrays of Python objects are refused.
    """
    found = _arrays(Path(path))
    for name in ("codes", "factors"):
        if name not in found:
            raise _error(path, f"must contain arrays codes and factors, got {', '.join(found) or 'no array'}")
    if ("test_codes" in found) != ("test_factors" in found):
        raise _error(path, "contains only one of test_codes and test_factors; give both or neither")
    names = _names(path, found["names"], found["factors"]) if "names" in found else None
    test = (found["test_codes"], found["test_factors"]) if "test_codes" in found else None
    return NpzArrays(found["codes"], found["factors"], names, test, found.get("logvar"))


def _error(path: str | Path, problem: str) -> UserError:
    accepted = f"an .npz file with some of the arrays {', '.join(KNOWN)}"
    return UserError(f"file '{path}' {problem}", argument="file", value=str(path), accepted=accepted)


def _arrays(path: Path) -> dict[str, NDArray[Any]]:
    if not path.is_file():
        raise _error(path, "does not exist; give an .npz with arrays codes and factors, or a run folder")
    try:
        if not zipfile.is_zipfile(path):
            raise ValueError("it is not an .npz; save codes and factors with numpy.savez")
        return read_npz_arrays(path, KNOWN)
    except Exception as error:  # a damaged file can cause almost any exception
        reason = " ".join(str(error).split()) or type(error).__name__
        raise _error(path, f"cannot be read as an .npz of plain arrays: {reason}") from error


def _names(path: str | Path, names: NDArray[Any], factors: NDArray[Any]) -> tuple[str, ...]:
    if names.ndim != 1 or names.dtype.kind not in "US":
        raise _error(path, f"must have a list of texts as names, got {names.dtype} {names.shape}")
    texts = tuple(name.decode("utf-8", "replace") if isinstance(name, bytes) else str(name) for name in names.tolist())
    if factors.ndim == 2 and len(texts) != factors.shape[1]:
        raise _error(path, f"must have one name per factor, got {len(texts)} names and {factors.shape[1]} factors")
    return texts
