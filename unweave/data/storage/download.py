"""Fetching a published file: gone on with after an interruption, checked, and there in full or not at all."""

from __future__ import annotations

import errno
import hashlib
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.client import HTTPException, HTTPResponse
from pathlib import Path
from typing import IO, NamedTuple
from urllib.error import HTTPError, URLError
from urllib.request import Request, urlopen

from unweave.data.storage.progress import progress_task
from unweave.errors import UserError
from unweave.version import __version__

try:
    import fcntl
except ImportError:  # not on Windows: there two downloads at once may spoil each other, which the checks then find
    fcntl = None  # type: ignore[assignment]

_TIMEOUT = 30.0  # seconds without a byte
_TRIES = 5  # of one address that breaks off but gives something each time
_BLOCK = 1 << 20


class RemoteFile(NamedTuple):
    """A file that somebody publishes."""

    file: str  # its name
    urls: tuple[str, ...]  # where it is found, the best place first
    size: int | None = None  # bytes; None where nobody published it
    digest: str = ""  # "sha256:...", "md5:..." or "git:..." (SHA-1 of the git object); "" where nobody published it


class _Failed(Exception):
    """Why one address did not give the file."""


def fetch(name: str, remote: RemoteFile, folder: Path) -> Path:
    """The file, downloaded into the folder unless it is there. `name` is the data set, for messages."""
    path, part = folder / remote.file, folder / f"{remote.file}.part"
    if path.is_file():
        return path
    _prepare(folder, remote.size)
    reasons = []
    for url in remote.urls:
        with _alone(part) as file:
            if path.is_file():  # another process was quicker
                part.unlink(missing_ok=True)
                return path
            try:
                _download(url, file, remote)
            except _Failed as failed:
                reasons.append(f"{url}: {failed}")
                _discard_empty(part, file)
                continue
            if fcntl is None:
                file.close()  # Windows renames no open file
            os.replace(part, path)
            return path
    raise UserError(
        f"data '{name}': {remote.file} cannot be downloaded ({'; '.join(reasons)}); "
        "get the file in another way and give path= the file or its folder"
    )


def digest_of(path: Path, kind: str) -> str:
    """The checksum of a file: kind is "sha256", "md5" or "git"."""
    made = hashlib.sha1(usedforsecurity=False) if kind == "git" else hashlib.new(kind, usedforsecurity=False)
    if kind == "git":
        made.update(b"blob %d\0" % path.stat().st_size)
    with open(path, "rb") as file:
        while block := file.read(_BLOCK):
            made.update(block)
    return made.hexdigest()


def wrong_digest(path: Path, remote: RemoteFile) -> str:
    """What is wrong with the file's checksum, in words; "" if it is right or none is published."""
    kind, _, expected = remote.digest.partition(":")
    found = digest_of(path, kind) if kind else ""
    if found == expected:
        return ""
    title = {"sha256": "SHA-256", "md5": "MD5", "git": "git SHA-1"}[kind]
    return f"its {title} is {found[:12]}..., not the published {expected[:12]}..."


def _prepare(folder: Path, size: int | None) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        free = shutil.disk_usage(folder).free
        if not os.access(folder, os.W_OK):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
    except OSError as error:
        raise UserError(
            f"cache folder '{folder}' cannot be written ({error.strerror}); set UNWEAVE_CACHE to another, or give path="
        ) from error
    if size is not None and free < size:
        raise UserError(
            f"cache folder '{folder}' has {free / 1e9:.1f} GB free and {size / 1e9:.1f} GB are needed; "
            "make room, or set UNWEAVE_CACHE to another folder"
        )


@contextmanager
def _alone(part: Path) -> Iterator[IO[bytes]]:
    """The partial file, open at its end, once no other process is writing it."""
    while True:
        with open(part, "ab") as file:
            if fcntl is not None:
                fcntl.flock(file, fcntl.LOCK_EX)  # let go when the file is closed
            if fcntl is None or os.fstat(file.fileno()).st_nlink:  # else it was thrown away meanwhile
                yield file
                return


def _discard_empty(part: Path, file: IO[bytes]) -> None:
    if not os.fstat(file.fileno()).st_size:
        with suppress(OSError):
            part.unlink()


def _download(url: str, file: IO[bytes], remote: RemoteFile) -> None:
    """The rest of the file, then its checksum; a wrong one empties the file."""
    for _ in range(_TRIES):
        before = file.seek(0, os.SEEK_END)
        try:
            _append(url, file, remote)
            break
        except (OSError, HTTPException) as error:
            if file.seek(0, os.SEEK_END) <= before:  # nothing came: no use trying again
                raise _Failed(_words(error)) from error
    else:
        raise _Failed(f"broke off {_TRIES} times; what came is kept, try again later")
    size = file.seek(0, os.SEEK_END)
    if remote.size not in (None, size):
        file.truncate(0)
        raise _Failed(f"offers {size} bytes, not the published {remote.size}")
    file.flush()
    os.fsync(file.fileno())
    if wrong := wrong_digest(Path(file.name), remote):
        file.truncate(0)
        raise _Failed(wrong)


def _append(url: str, file: IO[bytes], remote: RemoteFile) -> None:
    """One request for what is missing."""
    have = file.seek(0, os.SEEK_END)
    if have and have == remote.size:
        return
    headers = {"User-Agent": f"unweave/{__version__}", **({"Range": f"bytes={have}-"} if have else {})}
    try:
        answer = urlopen(Request(url, headers=headers), timeout=_TIMEOUT)
    except HTTPError as error:
        with error:
            if error.code != 416 or not have:
                raise
            if error.headers.get("Content-Range") == f"bytes */{have}":  # nothing is missing
                return
        file.truncate(0)
        return _append(url, file, remote)
    with answer:
        starts = answer.headers.get("Content-Range", "").startswith(f"bytes {have}-")
        if have and not (answer.status == 206 and starts):  # it sends everything again
            file.truncate(0)
            have = 0
        _receive(answer, file, have, remote)


def _receive(answer: HTTPResponse, file: IO[bytes], have: int, remote: RemoteFile) -> None:
    length = answer.headers.get("Content-Length")
    total = have + int(length) if length else None
    if answer.headers.get_content_type() == "text/html":
        raise _Failed("answers with a web page instead of the file")
    if remote.size is not None and total not in (None, remote.size):
        raise _Failed(f"offers {total} bytes, not the published {remote.size}")
    with progress_task(f"downloading {remote.file}", total or remote.size, "B") as step:
        while block := answer.read(_BLOCK):
            file.write(block)
            have += len(block)
            step(have)
    expected = total or remote.size
    if expected is not None and have < expected:
        raise ConnectionError(f"ended after {have} of {expected} bytes")
    if expected is not None and have > expected:
        file.truncate(0)
        raise _Failed(f"sent more than the {expected} bytes expected")


def _words(error: Exception) -> str:
    if isinstance(error, HTTPError):
        return f"{'the link is dead' if error.code in (404, 410) else 'refused'}, HTTP {error.code} {error.reason}"
    reason = error.reason if isinstance(error, URLError) else error
    text = getattr(reason, "strerror", None) or str(reason) or type(reason).__name__
    return f"no answer, {text}" if isinstance(error, URLError) else str(text)
