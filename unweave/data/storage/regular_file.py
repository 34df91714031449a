"""Read regular files only: a named pipe blocks its reader, and a device may never end or react to being opened."""

import errno
import os
import stat
from pathlib import Path
from typing import BinaryIO

_KINDS = {
    stat.S_IFIFO: "a named pipe", stat.S_IFSOCK: "a socket", stat.S_IFCHR: "a device", stat.S_IFBLK: "a device",
    stat.S_IFDIR: "a folder",
}  # fmt: skip


def irregular_kind(path: str | Path) -> str:
    """Return what a path is, links followed, such as "a named pipe"; "" for a regular file, or if there is nothing."""
    try:
        return _kind(os.stat(path).st_mode)
    except (OSError, ValueError):  # opening it reports the error
        return ""


def open_regular(path: str | Path) -> BinaryIO:
    """Open a regular file for reading; raise an OSError for anything else, without opening it."""
    _check(os.stat(path).st_mode, path)
    # It may be replaced at this moment: then opening does not block, and the check is repeated on the open file.
    descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    file = os.fdopen(descriptor, "rb")
    try:
        _check(os.fstat(descriptor).st_mode, path)
    except OSError:
        file.close()
        raise
    return file


def read_regular(path: str | Path) -> bytes:
    """Return the content of a regular file; raise an OSError for other files, a MemoryError for one too large."""
    try:
        with open_regular(path) as file:
            return file.read()
    except OSError as error:
        if error.errno == errno.ENOMEM:
            raise MemoryError(str(error)) from error
        raise


def _kind(mode: int) -> str:
    return "" if stat.S_ISREG(mode) else _KINDS.get(stat.S_IFMT(mode), "not a regular file")


def _check(mode: int, path: str | Path) -> None:
    if kind := _kind(mode):
        raise OSError(errno.EINVAL, kind if kind.startswith("not") else f"{kind}, not a file", str(path))
