"""Find the files of a published data set, at a path of the user or by download, and convert them to arrays."""

import gzip
import hashlib
import os
import struct
import tarfile
import wave
import zipfile
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from unweave.data.dataset import Dataset
from unweave.data.storage.array_store import Factors, StoredArrays, load_or_build
from unweave.data.storage.cache import cache_dir
from unweave.data.storage.digest import file_state
from unweave.data.storage.download import RemoteFile, fetch, wrong_digest
from unweave.data.storage.stored_images import StoredImages
from unweave.errors import UserError, check_path, invalid

DataPath = str | os.PathLike[str] | None
Read = Callable[..., Factors]  # reads the files and writes .npy arrays into the folder: read(files, folder, **options)

_SUBFOLDERS = ("", "raw", "Anno", "Eval", "Img")  # of a given folder, in which files are searched
_DAMAGED = (
    OSError, EOFError, ValueError, KeyError, IndexError, TypeError, NotImplementedError, struct.error, zlib.error,
    zipfile.BadZipFile, tarfile.TarError, wave.Error,
)  # fmt: skip


def open_files(
    name: str,
    remotes: Sequence[RemoteFile],
    path: DataPath,
    options: dict[str, object],
    read: Read,
    *,
    tree: bool = False,
    dataset: Callable[[str, StoredArrays, dict[str, object]], Dataset] = StoredImages,
) -> Dataset:
    """Return the data set of the arrays that `read` makes of the files.

    The arrays come from the cache if these files and options were read before. With `tree` the files are archives, and
    a folder with their content is accepted as well.
    """
    found = None if path is None else find_files(name, remotes, path, tree)
    key = repr((name, 1, sorted(options.items()), "published" if found is None else fingerprint(found)))

    def build(folder: Path) -> Factors:
        files = found or [fetch(name, remote, cache_dir() / "downloads" / name) for remote in remotes]
        check_copies(name, files, remotes)
        with damaged_files_as_user_errors(name, files):
            return read(files, folder, **options)

    arrays = load_or_build(f"{name}-{hashlib.sha256(key.encode()).hexdigest()[:16]}", build)
    absolute = {} if path is None else {"path": str(check_path("path", path))}
    return dataset(name, arrays, absolute | options)


def find_files(name: str, remotes: Sequence[RemoteFile], path: DataPath, tree: bool = False) -> list[Path]:
    """Return the files at a path; raise a UserError if one is missing."""
    required = " and ".join(remote.file for remote in remotes)
    accepted, context = f"{required}, or the folder with these files", f"data {name!r}"
    if not isinstance(path, str | os.PathLike) or not (root := check_path("path", path, context=context)).exists():
        raise invalid("path", path, accepted, context=context)
    if root.is_file():
        if len(remotes) > 1 and not tree:
            raise invalid("path", str(path), f"the folder that contains {required}", context=context)
        return [root]
    found = [_find_in(root, remote.file) for remote in remotes]
    present = [file for file in found if file is not None]
    if tree:
        return present or [root]
    for remote, file in zip(remotes, found, strict=True):
        if file is None:
            raise invalid("path", str(path), f"the folder that contains {remote.file}", context=context)
    return present


def _find_in(root: Path, file: str) -> Path | None:
    """Return the file in this folder, compressed or not."""
    names = [file, *(file.removesuffix(end) for end in (".gz", ".zip", ".tar.gz") if file.endswith(end))]
    candidates = [root / folder / name for folder in _SUBFOLDERS for name in names]
    return next((candidate for candidate in candidates if candidate.is_file() or candidate.is_dir()), None)


def fingerprint(paths: Sequence[Path]) -> str:
    """Return a hash of the names and states of all files, which changes if a file is written or replaced."""
    digest = hashlib.sha256()
    for path in paths:
        files = sorted(p for p in path.rglob("*") if p.is_file()) if path.is_dir() else [path]
        for file in files:
            digest.update(f"{file}\0{file_state(file.stat())}\0".encode(errors="surrogateescape"))
    return digest.hexdigest()


def check_copies(name: str, files: Sequence[Path], remotes: Sequence[RemoteFile]) -> None:
    """Raise if a file has the size of the published file but another checksum; other sizes are other versions."""
    known = {remote.file: remote for remote in remotes}
    for file in files:
        remote = known.get(file.name) or (remotes[0] if len(remotes) == 1 else None)
        if remote is None or not file.is_file() or file.stat().st_size != remote.size:
            continue
        if wrong := wrong_digest(file, remote):
            raise _damaged(name, file, wrong, f"the file from {remote.urls[0]}")


@contextmanager
def damaged_files_as_user_errors(name: str, files: Sequence[Path]) -> Iterator[None]:
    """Convert exceptions of a reader to one error about its files."""
    location = files[0] if len(files) == 1 else files[0].parent
    try:
        yield
    except UserError:
        raise
    except _DAMAGED as error:
        if isinstance(error, OSError) and error.errno is not None:
            file = error.filename
            if not (isinstance(file, str) and any(Path(file).is_relative_to(known) for known in files)):
                raise  # a problem of the cache, not of the data
        reason = " ".join(str(error).split()) or type(error).__name__
        raise _damaged(name, location, reason, "an intact copy") from error


def _damaged(name: str, path: Path, reason: str, accepted: str) -> UserError:
    message = f"data {name!r}: '{path}' is damaged or of another format: {reason}; pass path= {accepted}"
    return UserError(message, argument="path", value=str(path), accepted=accepted)


def read_unzipped(path: Path) -> bytes:
    """Return the content of a file, decompressed if it is gzipped."""
    content = path.read_bytes()
    return gzip.decompress(content) if content[:2] == b"\x1f\x8b" else content


def array_to_end(content: bytes, start: int, shape: Sequence[int], dtype: np.dtype, path: Path) -> np.ndarray:
    """Return the array from byte `start` to the end of a file; raise if its size differs."""
    expected = start + int(np.prod(shape, dtype=np.int64)) * dtype.itemsize
    if min(shape, default=0) < 0 or len(content) != expected:
        raise ValueError(f"{path.name} has {len(content)} bytes instead of the {expected} in its header")
    return np.frombuffer(content, dtype, offset=start).reshape(shape)
