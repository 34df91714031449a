"""Where a set's files are: a path the user gives, or downloads in the cache."""

from __future__ import annotations

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

from unweave.data.storage.array_store import Factors, StoredArrays, load_or_build
from unweave.data.storage.cache import cache_dir
from unweave.data.storage.download import RemoteFile, fetch, wrong_digest
from unweave.data.storage.stored_images import StoredImages
from unweave.errors import UserError

DataPath = str | os.PathLike[str] | None
Read = Callable[[list[Path], Path], Factors]  # reads the files, writes .npy arrays into the folder

_PLACES = ("", "raw", "Anno", "Eval", "Img")  # where else in a given folder files are often kept
_DAMAGED = (
    OSError, EOFError, ValueError, KeyError, IndexError, TypeError, NotImplementedError, struct.error, zlib.error,
    zipfile.BadZipFile, tarfile.TarError, wave.Error,
)  # fmt: skip


def pictures(
    name: str,
    remotes: Sequence[RemoteFile],
    path: DataPath,
    options: dict[str, object],
    read: Read,
    *,
    tree: bool = False,
) -> StoredImages:
    """The set made of these files; see `arrays`."""
    return StoredImages(name, arrays(name, remotes, path, options, read, tree=tree), kept(path, options))


def arrays(
    name: str,
    remotes: Sequence[RemoteFile],
    path: DataPath,
    options: dict[str, object],
    read: Read,
    *,
    tree: bool = False,
) -> StoredArrays:
    """What `read` makes of the files, made once and kept in the cache for these files and options.

    With `tree` the files are archives, and a folder with what was in them will do as well.
    """
    found = None if path is None else find(name, remotes, path, tree)
    told = repr((name, 1, sorted(options.items()), "published" if found is None else fingerprint(found)))

    def make(folder: Path) -> Factors:
        files = found or [fetch(name, remote, cache_dir() / "downloads" / name) for remote in remotes]
        check_copies(name, files, remotes)
        with readable(name, files):
            return read(files, folder)

    return load_or_build(f"{name}-{hashlib.sha256(told.encode()).hexdigest()[:16]}", make)


def kept(path: DataPath, options: dict[str, object]) -> dict[str, object]:
    """The options that re-create a set from anywhere."""
    return options if path is None else {"path": str(Path(path).expanduser().resolve()), **options}


def find(name: str, remotes: Sequence[RemoteFile], path: DataPath, tree: bool = False) -> list[Path]:
    """The files at the path a user gave."""
    if not isinstance(path, str | os.PathLike):
        raise UserError(f"data '{name}': path={path!r} is not accepted; give a file or folder")
    wanted = " and ".join(remote.file for remote in remotes)
    root = Path(path).expanduser().resolve()
    if not root.exists():
        raise UserError(f"data '{name}': path='{path}' does not exist; give {wanted} or the folder that holds it")
    if root.is_file():
        if len(remotes) > 1 and not tree:
            raise UserError(f"data '{name}': path='{path}' is one file; give the folder that holds {wanted}")
        return [root]
    found = [_within(root, remote.file) for remote in remotes]
    if tree:
        return [file for file in found if file is not None] or [root]
    for remote, file in zip(remotes, found, strict=True):
        if file is None:
            raise UserError(f"data '{name}': path='{path}' holds no {remote.file}; give the folder that does")
    return [file for file in found if file is not None]


def _within(root: Path, file: str) -> Path | None:
    """The file in this folder, packed or not."""
    names = [file, *(file.removesuffix(end) for end in (".gz", ".zip", ".tar.gz") if file.endswith(end))]
    candidates = [root / place / name for place in _PLACES for name in names]
    return next((candidate for candidate in candidates if candidate.exists()), None)


def fingerprint(paths: Sequence[Path]) -> str:
    """Changes when a file does, judged by name, size and time of change."""
    made = hashlib.sha256()
    for path in paths:
        files = sorted(p for p in path.rglob("*") if p.is_file()) if path.is_dir() else [path]
        for file in files:
            about = file.stat()
            made.update(f"{file}\0{about.st_size}\0{about.st_mtime_ns}\0".encode(errors="surrogateescape"))
    return made.hexdigest()


def check_copies(name: str, files: Sequence[Path], remotes: Sequence[RemoteFile]) -> None:
    """A copy as long as the published file must be the published file; another length is somebody's own version."""
    known = {remote.file: remote for remote in remotes}
    for file in files:
        remote = known.get(file.name) or (remotes[0] if len(remotes) == 1 else None)
        if remote is None or not file.is_file() or file.stat().st_size != remote.size:
            continue
        if wrong := wrong_digest(file, remote):
            raise UserError(f"data '{name}': '{file}' is damaged: {wrong}; get it again from {remote.urls[0]}")


@contextmanager
def readable(name: str, files: Sequence[Path]) -> Iterator[None]:
    """Whatever a reader stumbles over becomes one line about the file."""
    try:
        yield
    except UserError:
        raise
    except OSError as error:
        if error.errno is not None and not _among(error.filename, files):
            raise  # the disk, not the data
        raise _unreadable(name, files, error) from error
    except _DAMAGED as error:
        raise _unreadable(name, files, error) from error


def _among(file: object, files: Sequence[Path]) -> bool:
    return isinstance(file, str) and any(Path(file).is_relative_to(known) for known in files)


def _unreadable(name: str, files: Sequence[Path], error: BaseException) -> UserError:
    why = " ".join(str(error).split()) or type(error).__name__
    where = f"'{files[0]}'" if len(files) == 1 else f"'{files[0].parent}'"
    return UserError(f"data '{name}': {where} is damaged or not what it should be: {why}; give path= a whole copy")


def unpacked(path: Path) -> bytes:
    """The content of a file that may be gzipped, which its first bytes tell."""
    content = path.read_bytes()
    return gzip.decompress(content) if content[:2] == b"\x1f\x8b" else content


def whole_array(content: bytes, start: int, shape: Sequence[int], dtype: np.dtype, path: Path) -> np.ndarray:
    """The array that fills a file from `start` to its very end."""
    expected = start + int(np.prod(shape, dtype=np.int64)) * dtype.itemsize
    if min(shape, default=0) < 0 or len(content) != expected:
        raise ValueError(f"{path.name} has {len(content)} bytes where its header announces {expected}")
    return np.frombuffer(content, dtype, offset=start).reshape(shape)
