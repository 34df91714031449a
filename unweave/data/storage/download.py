"""Download a published file, resuming after interruptions; a file that exists is complete.

It has the published checksum, or if none is published, that of the first download, which is stored beside it.
"""

import errno
import hashlib
import os
import shutil
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from http.client import HTTPException, HTTPResponse
from pathlib import Path
from typing import IO, Any, NamedTuple
from urllib.error import HTTPError, URLError
from urllib.request import HTTPRedirectHandler, Request, build_opener

from unweave.data.storage.cache import cache_error
from unweave.data.storage.progress import progress_task
from unweave.errors import UserError, UserNotice
from unweave.runs import write_atomic
from unweave.version import __version__

try:
    import fcntl
except ImportError:  # on Windows, where simultaneous downloads may damage each other; the checks detect it
    fcntl = None  # type: ignore[assignment]

_TIMEOUT = 30.0  # seconds without a byte
_TRIES = 5  # of one address whose connections end early but make progress
_BLOCK = 1 << 20


class RemoteFile(NamedTuple):
    """A published file."""

    file: str  # name of the file
    urls: tuple[str, ...]  # in order of preference
    size: int | None = None  # bytes; None if not published
    digest: str = ""  # "sha256:...", "md5:..." or "git:..." (SHA-1 of the git object); "" if not published


def remote_files(homes: Sequence[str], *files: tuple[str, int, str]) -> list[RemoteFile]:
    """Return files that each of these addresses provides, given by name, bytes and SHA-256."""
    return [RemoteFile(name, tuple(home + name for home in homes), size, f"sha256:{sha}") for name, size, sha in files]


class _DownloadError(Exception):
    """One address did not provide the file; the text gives the reason."""


class SecureRedirects(HTTPRedirectHandler):
    """Follows redirects, but not from https to an address whose content anybody on the way could replace."""

    def redirect_request(self, req: Request, fp: Any, code: int, msg: str, headers: Any, newurl: str) -> Request | None:
        if req.full_url.startswith("https:") and not newurl.startswith("https:"):
            raise _DownloadError(f"redirects from https to {newurl}")
        return super().redirect_request(req, fp, code, msg, headers, newurl)


urlopen = build_opener(SecureRedirects).open


def fetch(name: str, remote: RemoteFile, folder: Path) -> Path:
    """Return the file, downloaded to the folder if necessary. `name` is the data set, for messages."""
    path, part = folder / remote.file, folder / f"{remote.file}.part"
    if path.is_file():
        _check_unchanged(name, path, remote)
        return path
    _prepare_folder(folder, remote.size)
    reasons = []
    for url in remote.urls:
        with _locked(part) as file:
            if path.is_file():  # another process was faster
                part.unlink(missing_ok=True)
                return path
            try:
                _download(url, file, remote)
            except _DownloadError as error:
                reasons.append(f"{url}: {error}")
                if not os.fstat(file.fileno()).st_size:
                    with suppress(OSError):
                        part.unlink()
                continue
            if fcntl is None:
                file.close()  # Windows does not rename open files
            if not remote.digest:
                _record_digest(name, part, path, url)
            os.replace(part, path)
            return path
    accepted = "the file or its folder, downloaded in another way"
    message = f"data {name!r}: {remote.file} cannot be downloaded ({'; '.join(reasons)}); pass path= {accepted}"
    raise UserError(message, argument="path", accepted=accepted)


def _record(path: Path) -> Path:
    return path.with_name(f"{path.name}.sha256")


def _record_digest(name: str, part: Path, path: Path, url: str) -> None:
    """Store the checksum of a first download for which none is published, so that later changes are detected."""
    digest = digest_of(part, "sha256")
    write_atomic(_record(path), f"{digest}  {path.name}\n".encode())
    insecure = ", and the connection was not encrypted" if url.startswith("http:") else ""
    text = f"data {name!r}: no checksum of {path.name} is published{insecure}; the SHA-256 of this download is {digest}"
    warnings.warn(text, UserNotice, stacklevel=2)


def _check_unchanged(name: str, path: Path, remote: RemoteFile) -> None:
    """Raise if a file differs from the published or the first downloaded one."""
    if remote.digest:
        wrong = wrong_digest(path, remote)
    else:
        known = _record(path).read_text().split()[:1] if _record(path).is_file() else []
        wrong = "it has changed since it was downloaded" if known not in ([], [digest_of(path, "sha256")]) else ""
    if wrong:
        accepted = "an intact copy, or delete the file to download it again"
        raise UserError(f"data {name!r}: '{path}': {wrong}; pass path= {accepted}", argument="path", value=str(path))


def digest_of(path: Path, kind: str) -> str:
    """Return the checksum of a file; kind is "sha256", "md5" or "git"."""
    digest = hashlib.sha1(usedforsecurity=False) if kind == "git" else hashlib.new(kind, usedforsecurity=False)
    if kind == "git":
        digest.update(b"blob %d\0" % path.stat().st_size)
    with open(path, "rb") as file:
        while block := file.read(_BLOCK):
            digest.update(block)
    return digest.hexdigest()


def wrong_digest(path: Path, remote: RemoteFile) -> str:
    """Describe the difference of the checksum from the published one; "" if they are equal or none is published."""
    kind, _, expected = remote.digest.partition(":")
    found = digest_of(path, kind) if kind else ""
    if found == expected:
        return ""
    title = {"sha256": "SHA-256", "md5": "MD5", "git": "git SHA-1"}[kind]
    return f"its {title} is {found[:12]}..., not the published {expected[:12]}..."


def _prepare_folder(folder: Path, size: int | None) -> None:
    """Create the folder; raise unless it is writable and has the required space."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        free = shutil.disk_usage(folder).free
        if not os.access(folder, os.W_OK):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
    except OSError as error:
        raise cache_error(folder, error) from error
    if size is not None and free < size:
        raise cache_error(folder, f"{free / 1e9:.1f} GB free, {size / 1e9:.1f} GB required")


@contextmanager
def _locked(part: Path) -> Iterator[IO[bytes]]:
    """Open the partial file at its end when no other process is writing it."""
    while True:
        with open(part, "ab") as file:
            if fcntl is not None:
                fcntl.flock(file, fcntl.LOCK_EX)  # released when the file is closed
            if fcntl is None or os.fstat(file.fileno()).st_nlink:  # else another process has deleted it
                yield file
                return


def _download(url: str, file: IO[bytes], remote: RemoteFile) -> None:
    """Download the rest of the file and verify it; a file that differs from the published one is emptied."""
    for _ in range(_TRIES):
        before = file.seek(0, os.SEEK_END)
        try:
            _append(url, file, remote)
            break
        except (OSError, HTTPException) as error:
            if file.seek(0, os.SEEK_END) <= before:  # no progress
                raise _DownloadError(_reason(error)) from error
    else:
        raise _DownloadError(f"the connection ended {_TRIES} times; try again later, the part received is kept")
    size = file.seek(0, os.SEEK_END)
    if remote.size not in (None, size):
        file.truncate(0)
        raise _DownloadError(f"sent {size} bytes, not the published {remote.size}")
    file.flush()
    os.fsync(file.fileno())
    if wrong := wrong_digest(Path(file.name), remote):
        file.truncate(0)
        raise _DownloadError(wrong)


def _append(url: str, file: IO[bytes], remote: RemoteFile) -> None:
    """Request the missing part of the file."""
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
            if error.headers.get("Content-Range") == f"bytes */{have}":  # the file is complete
                return
        file.truncate(0)
        return _append(url, file, remote)
    with answer:
        starts = answer.headers.get("Content-Range", "").startswith(f"bytes {have}-")
        if have and not (answer.status == 206 and starts):  # the server sends the whole file
            file.truncate(0)
            have = 0
        _receive(answer, file, have, remote)


def _receive(answer: HTTPResponse, file: IO[bytes], have: int, remote: RemoteFile) -> None:
    length = answer.headers.get("Content-Length")
    total = have + int(length) if length else None
    if answer.headers.get_content_type() == "text/html":
        raise _DownloadError("sent a web page instead of the file")
    if remote.size is not None and total not in (None, remote.size):
        raise _DownloadError(f"announces {total} bytes, not the published {remote.size}")
    with progress_task(f"downloading {remote.file}", total or remote.size, "B") as update:
        while block := answer.read(_BLOCK):
            file.write(block)
            have += len(block)
            update(have)
    expected = total or remote.size
    if expected is not None and have < expected:
        raise ConnectionError(f"the connection ended after {have} of {expected} bytes")
    if expected is not None and have > expected:
        file.truncate(0)
        raise _DownloadError(f"sent more than the announced {expected} bytes")


def _reason(error: Exception) -> str:
    if isinstance(error, HTTPError):
        return f"HTTP {error.code} {error.reason}"
    reason = error.reason if isinstance(error, URLError) else error
    text = reason.strerror if isinstance(reason, OSError) else None
    text = text or str(reason) or type(reason).__name__
    return f"no answer, {text}" if isinstance(error, URLError) else text
