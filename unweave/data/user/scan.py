"""Decode every image file below a folder once into an array of bytes in the cache.

The name of the cached array is a hash of the file names, sizes and times and of the preprocessing. It is used if the
files are also in the same state as when it was made. Images are in the order of their names.
"""

import hashlib
import json
import os
import shutil
import tempfile
import warnings
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch

from unweave.data.storage.cache import cache_dir, cache_error, cache_lock
from unweave.data.storage.digest import FileState, file_state, hash_tensor, hash_text, mapped_file
from unweave.data.storage.memmap import MemmapWriter, open_memmap
from unweave.data.storage.progress import progress_task
from unweave.data.storage.regular_file import read_regular
from unweave.data.user.image_io import (
    NOT_AN_IMAGE,
    ImageInfo,
    Preprocessing,
    UnreadableImageError,
    decode_image,
    one_at_a_time,
)
from unweave.errors import UserError
from unweave.runs import write_atomic

Files = Mapping[str, FileState]  # by the path inside the folder

_VERSION = 3  # of the cached arrays
_CHUNK = 128  # images decoded between two updates of the progress
_MAX_BYTES = 1 << 30  # of an image file
_LARGE_FILE = 64 << 20  # larger files, in bytes, are read one after another
_SYSTEM_FILES = ("thumbs.db", "desktop.ini", "__macosx")  # ignored, like names that begin with a dot


class FolderScan(NamedTuple):
    """The image files of a folder."""

    files: list[str]  # paths inside the folder, in the order of the data set
    unreadable: dict[str, str]  # files that are not images, with the reason
    formats: dict[str, int]
    modes: dict[str, int]
    sizes: dict[str, int]  # "640 x 480"
    traits: dict[str, int]  # number of images with each trait of `ImageInfo`
    max_16_bit: int  # largest value in 16-bit images
    gray: bool  # True if no image has colour
    digest: str  # of the names and contents of the images


def list_files(root: Path, skip: Collection[Path] = ()) -> Files:
    """Return every file below the folder except those in `skip`, in the order of their names."""
    files: dict[str, FileState] = {}
    visited: set[str] = set()
    for folder, subfolders, names in os.walk(root, followlinks=True):
        real = os.path.realpath(folder)
        if real in visited:  # a link to a parent folder
            subfolders.clear()
            continue
        visited.add(real)
        subfolders[:] = [name for name in subfolders if not _is_system_file(name)]
        for name in names:
            path = Path(folder, name)
            if not _is_system_file(name) and path not in skip:
                try:
                    found = file_state(path.stat())
                except OSError:  # a broken link; reading it reports the error
                    found = 0, -1, 0, 0
                files[path.relative_to(root).as_posix()] = found
    return dict(sorted(files.items()))


def _is_system_file(name: str) -> bool:
    return name.startswith(".") or name.lower() in _SYSTEM_FILES


def read_folder(root: Path, files: Files, preprocessing: Preprocessing) -> tuple[np.ndarray, FolderScan]:
    """Return the images [N, C, H, W] in bytes, from the cache if the same files were read before."""
    known = [(name, size, modified) for name, (_, size, modified, _) in files.items()]
    key = json.dumps([_VERSION, str(root), known, preprocessing])
    name = f"folder-{hashlib.blake2b(key.encode(), digest_size=12).hexdigest()}"
    pixels_path, scan_path = cache_dir() / f"{name}.npy", cache_dir() / f"{name}.json"
    if (cached := _read_cached(pixels_path, scan_path, files)) is not None:
        return cached
    with cache_lock(name):
        if (cached := _read_cached(pixels_path, scan_path, files)) is not None:  # made by another process meanwhile
            return cached
        try:
            return _decode_to_cache(root, files, preprocessing, pixels_path, scan_path)
        except OSError as error:
            raise cache_error(cache_dir(), error) from error


def _read_cached(pixels_path: Path, scan_path: Path, files: Files) -> tuple[np.ndarray, FolderScan] | None:
    """Return the cached array and its scan if they belong together and were made of the files in this state."""
    try:
        stored = json.loads(scan_path.read_text())
        scan, pixels = FolderScan(**stored["scan"]), open_memmap(pixels_path)
        states = _states(pixels_path, files)
        return (pixels, scan) if stored["states"] == states and len(pixels) == len(scan.files) else None
    except (OSError, ValueError, TypeError, KeyError):  # absent or damaged
        return None


def _states(pixels_path: Path, files: Files) -> str:
    """Return a hash of the states of the cached array and of all files that it was made of."""
    return hash_text([file_state(pixels_path.stat()), list(files.values())])


def _decode_to_cache(
    root: Path, files: Files, preprocessing: Preprocessing, pixels_path: Path, scan_path: Path
) -> tuple[np.ndarray, FolderScan]:
    """Write the array, then its scan; an array without a scan is incomplete and not used."""
    try:
        writer = MemmapWriter(pixels_path)
    except OSError:  # the cache is not writable: a temporary file
        writer = MemmapWriter(Path(tempfile.mkdtemp(prefix="unweave-")) / pixels_path.name)
    with writer:
        scan = _decode_files(root, files, preprocessing, writer)
    if preprocessing.channels == "auto" and scan.gray:
        rgb = open_memmap(writer.path)
        with MemmapWriter(writer.path) as writer:
            for image in rgb:
                writer.add(image[None, :1])
    pixels = open_memmap(writer.path)
    if writer.path == pixels_path:
        hash_tensor(torch.from_numpy(pixels), file=mapped_file(pixels), name=str(root))  # stored beside the array
        stored = {"states": _states(pixels_path, files), "scan": scan._asdict()}
        write_atomic(scan_path, json.dumps(stored).encode())
    else:
        shutil.rmtree(writer.path.parent, ignore_errors=True)  # the memory map outlives the name of the file
    return pixels, scan


def _decode_files(root: Path, files: Files, preprocessing: Preprocessing, writer: MemmapWriter) -> FolderScan:
    counts: dict[str, Counter[str]] = {name: Counter() for name in ("formats", "modes", "sizes", "traits")}
    names, unreadable, max_16_bit, gray = [], {}, 0, True
    digest = hashlib.blake2b(digest_size=6)
    # the results come first, so that zip exhausts them
    for (content_digest, result), name in zip(_results(root, files, preprocessing), files):
        if isinstance(result, str):
            unreadable[name] = result
            continue
        pixels, info = result
        writer.add(pixels[None])
        names.append(name)
        digest.update(os.fsencode(name) + b"\0" + content_digest)
        counts["formats"][info.format] += 1
        counts["modes"][info.mode] += 1
        counts["sizes"]["{} x {}".format(*info.size)] += 1
        counts["traits"].update(info.traits)
        max_16_bit = max(max_16_bit, info.max_16_bit)
        gray = gray and bool((pixels == pixels[:1]).all())
    if len(names) < 2:
        raise _too_few(root, names, unreadable)
    ordered = {name: dict(counter.most_common()) for name, counter in counts.items()}
    return FolderScan(names, unreadable, **ordered, max_16_bit=max_16_bit, gray=gray, digest=digest.hexdigest())  # type: ignore[arg-type]


Result = tuple[bytes, tuple[np.ndarray, ImageInfo] | str]  # digest of the file; the image, or why it is unreadable


def _results(root: Path, files: Files, preprocessing: Preprocessing) -> Iterator[Result]:
    """Yield the result of each file in order. Pillow releases the lock of the interpreter while it decodes."""
    names = list(files)
    with (
        ThreadPoolExecutor(min(8, os.cpu_count() or 1)) as threads,
        progress_task("reading images", len(names), " images") as update,
        warnings.catch_warnings(),
    ):
        warnings.simplefilter("ignore")  # about unusual but readable files
        for start in range(0, len(names), _CHUNK):
            chunk = names[start : start + _CHUNK]
            yield from threads.map(lambda name: _read_file(root / name, files[name][1], preprocessing), chunk)
            update(start + len(chunk))


def _read_file(path: Path, size: int, preprocessing: Preprocessing) -> Result:
    if size > _MAX_BYTES:
        return b"", "too large for an image"
    try:
        with one_at_a_time(size > _LARGE_FILE):
            content = read_regular(path)
            return hashlib.blake2b(content, digest_size=16).digest(), decode_image(content, preprocessing)
    except MemoryError as error:  # it must not be left out like a damaged file
        accepted = "of a size that fits into memory"
        raise UserError(
            f"image '{path}' does not fit into memory; it must be {accepted}",
            argument="data",
            value=str(path),
            accepted=accepted,
        ) from error
    except UnreadableImageError as error:
        return b"", str(error)
    except OSError as error:
        return b"", error.strerror or str(error)


def _too_few(root: Path, names: list[str], unreadable: Mapping[str, str]) -> UserError:
    """Return the error for a folder with fewer than two images."""
    if names:
        problem = f"only {names[0]!r}"
    elif not unreadable:
        problem = "no files"
    else:
        name, reason = min(unreadable.items(), key=lambda item: item[1] == NOT_AN_IMAGE)
        problem = f"none; it contains {len(unreadable)} other files, such as {name!r}: {reason}"
    accepted = "a folder with at least two readable images"
    message = f"data '{root}' must be {accepted}, got {problem}"
    return UserError(message, argument="data", value=str(root), accepted=accepted)
