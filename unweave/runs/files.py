"""Files and folders that appear complete or not at all, and the errors of locations that cannot be written."""

import os
import re
import secrets
import shutil
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

from unweave.errors import UserError, invalid
from unweave.runs.lock import lock

LOCK = ".lock"  # in every run folder; held while the run is written
_LEFTOVER_SECONDS = 3600  # younger temporary folders may belong to a process that has not locked them yet
_NEW_FOLDER = re.compile(r"\..*\.new-[0-9a-f]{8}")


def write_atomic(path: Path, content: bytes) -> None:
    """Write a file such that it has either its old or its complete new content, even if the process is killed."""
    temporary = _temporary_name(path)
    try:
        write_new(temporary, content, path)
        sync_folder(path.parent)
    except OSError as error:
        error.filename, error.filename2 = str(path), None  # instead of the temporary name, or none for a full disk
        raise


def write_new(path: Path, content: bytes, final: Path | None = None) -> None:
    """Write a file that does not exist, to disk, and rename it to `final`, if that is given; remove it on failure."""
    with open(path, "xb") as file:
        try:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
            if final is not None:
                os.replace(path, final)
        except BaseException:
            with suppress(FileNotFoundError):  # it was renamed before the interruption
                path.unlink()
            raise


def sync_file(path: Path) -> None:
    """Write the content of a file to disk."""
    with open(path, "rb+") as file:
        os.fsync(file.fileno())


def sync_folder(path: Path) -> None:
    """Write the names in a folder to disk, so that a rename survives a power failure."""
    with suppress(OSError):  # systems and file systems that cannot open or sync folders
        descriptor = os.open(path, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def keep_copy(path: Path, copy: Path) -> None:
    """Let `copy` be the present content of a file, also after `write_atomic` has replaced the file."""
    if copy.exists() and path.samefile(copy):  # left by a process that was killed before it replaced the file
        return
    temporary = _temporary_name(copy)
    try:
        os.link(path, temporary)
    except OSError:  # a file system without links
        write_atomic(copy, path.read_bytes())
    else:
        os.replace(temporary, copy)


def remove_temporary_files(folder: Path, names: tuple[str, ...]) -> None:
    """Remove what killed processes left of files with these names; no other process may be writing them."""
    for entry in os.scandir(folder):
        if any(re.fullmatch(rf"\.{re.escape(name)}\.\w{{8}}", entry.name) for name in names):
            with suppress(OSError):
                os.unlink(entry.path)


@contextmanager
def new_folder(path: Path) -> Iterator[Path]:
    """Yield a temporary folder that is renamed to `path` at the end of the block, if nothing exists there.

    On failure the folders that were created here are removed: the temporary one, and its parents if they are empty.
    """
    created: list[Path] = []
    temporary = _temporary_name(path, "new-")
    try:
        _make_folder(temporary, created)
        yield temporary
        sync_folder(temporary)
        os.rename(temporary, path)
        sync_folder(path.parent)
    except BaseException as error:
        if temporary in created:
            shutil.rmtree(created.pop(), ignore_errors=True)
        for parent in reversed(created):
            with suppress(OSError):  # another process uses it
                parent.rmdir()
        if isinstance(error, OSError) and os.path.lexists(path):
            raise existing_folder_error(path) from error
        raise


def _temporary_name(path: Path, kind: str = "") -> Path:
    """Return a name for a temporary file or folder, of at most the 255 bytes that a name may have."""
    name = path.name.encode(errors="surrogateescape")[:200].decode(errors="ignore")
    return path.with_name(f".{name}.{kind}{secrets.token_hex(4)}")


def _make_folder(path: Path, created: list[Path]) -> None:
    """Create a folder and its missing parents; append each to `created`."""
    try:
        path.mkdir()
    except FileNotFoundError:
        with suppress(FileExistsError):  # another process was faster
            _make_folder(path.parent, created)
        path.mkdir()
    created.append(path)


def is_temporary(path: Path) -> bool:
    """Return True if the name is that of a folder from `new_folder`."""
    return _NEW_FOLDER.fullmatch(path.name) is not None


def remove_leftover_folders(parent: Path) -> None:
    """Remove temporary folders of `new_folder` whose process was killed."""
    for entry in os.scandir(parent):
        path = Path(entry.path)
        if is_temporary(path) and entry.is_dir(follow_symlinks=False):
            old = time.time() - entry.stat(follow_symlinks=False).st_mtime > _LEFTOVER_SECONDS
            with suppress(OSError, _InUse):
                if old:
                    with lock(path / LOCK, _InUse):
                        shutil.rmtree(path, ignore_errors=True)


class _InUse(Exception):
    """The folder belongs to a running process."""


def existing_folder_error(path: Path | str) -> UserError:
    hint = "choose another, or continue this one with --resume"
    return invalid("out", str(path), "a folder that does not exist", hint=hint)


def unwritable(path: Path | str, error: OSError, argument: str = "out") -> UserError:
    message = f"{argument} '{path}' cannot be written: {error.strerror or error}; choose another location"
    return UserError(message, argument=argument, value=str(path), accepted="a writable location")


def write_files(out: str | Path, contents: Mapping[Path, bytes], *, argument: str = "out") -> None:
    """Write files and their folders, all or none; raise a UserError that names `out` if that fails.

    A link stays a link, and the file that it names is written. Devices, pipes and folders are refused.
    """
    created: list[Path] = []  # folders
    written: dict[Path, Path] = {}  # temporary files, with their targets
    try:
        for path, content in contents.items():
            target = _writable_target(path, argument)
            if not target.parent.is_dir():
                _make_folder(target.parent, created)
            temporary = _temporary_name(target)
            write_new(temporary, content)
            written[temporary] = target
        for temporary in list(written):
            os.replace(temporary, written[temporary])
            sync_folder(written.pop(temporary).parent)
    except BaseException as error:
        for temporary in written:
            temporary.unlink(missing_ok=True)
        for folder in reversed(created):
            with suppress(OSError):  # another process uses it
                folder.rmdir()
        if isinstance(error, OSError):
            raise unwritable(out, error, argument) from error
        raise


def _writable_target(path: Path, argument: str) -> Path:
    """Return the file that a path names; raise unless it is a regular file or does not exist."""
    given = path.expanduser()
    if given.exists() and not given.is_file():
        accepted = "a regular file, or a name that does not exist"
        raise invalid(argument, str(path), accepted, hint="this is a folder" * given.is_dir())
    return Path(os.path.realpath(given))
