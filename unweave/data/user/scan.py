"""Every picture below a folder, decoded once into one store of bytes in the cache.

A store's name is made of the files' names, sizes and times and of what was done to them, so a changed folder is read
again. Pictures are in the order of their names.
"""

from __future__ import annotations

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

from unweave.data.storage.cache import cache_dir
from unweave.data.storage.memmap import MemmapWriter, open_memmap
from unweave.data.storage.progress import progress_task
from unweave.data.user.image_io import Facts, Preprocessing, UnreadableImageError, decode_image
from unweave.errors import UserError
from unweave.runs import write_atomic

Listed = Mapping[str, tuple[int, int]]  # path inside the folder -> size in bytes, time in nanoseconds

_FORM = 1  # of the stores; another number makes them all anew
_CHUNK = 128  # pictures read between two looks at the progress
_LARGEST = 1 << 30  # bytes of a file that may be a picture
_LITTER = ("thumbs.db", "desktop.ini", "__macosx")  # what systems leave behind, besides names with a dot in front


class FolderScan(NamedTuple):
    """What a folder held."""

    pictures: list[str]  # paths inside the folder, in the order of the data set
    bad: dict[str, str]  # files that gave no picture, and why
    formats: dict[str, int]
    modes: dict[str, int]
    sizes: dict[str, int]  # "640 x 480"
    traits: dict[str, int]  # how many pictures needed which care
    brightest: int  # the largest value in 16-bit pictures
    gray: bool  # whether no picture has colour
    digest: str  # of the names and the content of the pictures


def list_files(root: Path, skip: Collection[Path] = ()) -> Listed:
    """Every file below the folder except those to `skip`, in the order of the names."""
    found: dict[str, tuple[int, int]] = {}
    seen: set[str] = set()
    for place, folders, files in os.walk(root, followlinks=True):
        real = os.path.realpath(place)
        if real in seen:  # a link back up
            folders.clear()
            continue
        seen.add(real)
        folders[:] = [name for name in folders if not _litter(name)]
        for name in files:
            path = Path(place, name)
            if not _litter(name) and path not in skip:
                found[path.relative_to(root).as_posix()] = _stamp(path)
    return dict(sorted(found.items()))


def _litter(name: str) -> bool:
    return name.startswith(".") or name.lower() in _LITTER


def _stamp(path: Path) -> tuple[int, int]:
    try:
        state = path.stat()
        return state.st_size, state.st_mtime_ns
    except OSError:  # a link to nowhere: reading it will say so
        return -1, 0


def read_folder(root: Path, listed: Listed, preprocessing: Preprocessing) -> tuple[np.ndarray, FolderScan]:
    """The pictures [N, C, H, W] in bytes, from the cache if these very files were read before."""
    said = json.dumps([_FORM, str(root), list(listed.items()), preprocessing])
    name = f"folder-{hashlib.blake2b(said.encode(), digest_size=12).hexdigest()}"
    pixels, notes = cache_dir() / f"{name}.npy", cache_dir() / f"{name}.json"
    try:
        found, store = FolderScan(**json.loads(notes.read_text())), open_memmap(pixels)
        if len(store) == len(found.pictures):
            return store, found
    except (OSError, ValueError, TypeError):  # absent, cut short or not ours
        pass
    try:
        return _made(root, listed, preprocessing, pixels, notes)
    except OSError as error:
        raise UserError(
            f"the cache '{cache_dir()}' cannot be written: {error.strerror or error}; make room there, "
            "or set UNWEAVE_CACHE to another folder"
        ) from error


def _made(
    root: Path, listed: Listed, preprocessing: Preprocessing, pixels: Path, notes: Path
) -> tuple[np.ndarray, FolderScan]:
    """The store, new. Only with its notes beside it does it count, so nothing half-made is ever found."""
    with _writer(pixels) as writer:
        found = _decode(root, listed, preprocessing, writer)
    if preprocessing.channels == "auto" and found.gray:
        coloured = open_memmap(writer.path)
        with MemmapWriter(writer.path) as writer:
            for picture in coloured:
                writer.add(picture[:1])
    store = open_memmap(writer.path)
    if writer.path == pixels:
        write_atomic(notes, json.dumps(found._asdict()).encode())
    else:
        shutil.rmtree(writer.path.parent, ignore_errors=True)  # mapped memory outlives the file's name
    return store, found


def _writer(path: Path) -> MemmapWriter:
    """Into the cache; where that cannot be written, into a file that only lives as long as it is used."""
    try:
        return MemmapWriter(path)
    except OSError:
        return MemmapWriter(Path(tempfile.mkdtemp(prefix="unweave-")) / path.name)


def _decode(root: Path, listed: Listed, preprocessing: Preprocessing, writer: MemmapWriter) -> FolderScan:
    counts: dict[str, Counter[str]] = {name: Counter() for name in ("formats", "modes", "sizes", "traits")}
    pictures, bad, brightest, gray = [], {}, 0, True
    digest = hashlib.blake2b(digest_size=6)
    for (stamp, answer), name in zip(
        _answers(root, listed, preprocessing), listed
    ):  # the answers first: they are to end
        if isinstance(answer, str):
            bad[name] = answer
            continue
        pixels, facts = answer
        writer.add(pixels)
        pictures.append(name)
        digest.update(os.fsencode(name) + b"\0" + stamp)
        for kind, keys in _counted(facts).items():
            counts[kind].update(keys)
        brightest = max(brightest, facts.brightest)
        gray = gray and bool((pixels == pixels[:1]).all())
    _enough(root, pictures, bad)
    orders = {kind: dict(counter.most_common()) for kind, counter in counts.items()}
    return FolderScan(pictures, bad, **orders, brightest=brightest, gray=gray, digest=digest.hexdigest())  # type: ignore[arg-type]


def _counted(facts: Facts) -> dict[str, tuple[str, ...]]:
    size = "{} x {}".format(*facts.size)
    return {"formats": (facts.format,), "modes": (facts.mode,), "sizes": (size,), "traits": facts.traits}


Answer = tuple[bytes, tuple[np.ndarray, Facts] | str]  # a digest of the file; the picture, or why there is none


def _answers(root: Path, listed: Listed, preprocessing: Preprocessing) -> Iterator[Answer]:
    """What each file gave, in order. Pillow lets other threads run while it decodes."""
    names = list(listed)
    with (
        ThreadPoolExecutor(min(8, os.cpu_count() or 1)) as threads,
        progress_task("reading pictures", len(names), " pictures") as move,
        warnings.catch_warnings(),
    ):
        warnings.simplefilter("ignore")  # of odd but readable files
        for start in range(0, len(names), _CHUNK):
            chunk = names[start : start + _CHUNK]
            yield from threads.map(lambda name: _answer(root / name, listed[name][0], preprocessing), chunk)
            move(start + len(chunk))


def _answer(path: Path, size: int, preprocessing: Preprocessing) -> Answer:
    if size > _LARGEST:
        return b"", "too large for a picture"
    try:
        content = path.read_bytes()
        return hashlib.blake2b(content, digest_size=16).digest(), decode_image(content, preprocessing)
    except UnreadableImageError as error:
        return b"", str(error)
    except OSError as error:
        return b"", error.strerror or str(error)


def _enough(root: Path, pictures: list[str], bad: Mapping[str, str]) -> None:
    if len(pictures) > 1:
        return
    if pictures:
        raise UserError(f"data '{root}' has one picture only, {pictures[0]!r}; give at least two")
    if not bad:
        raise UserError(f"data '{root}' is an empty folder; give one with pictures in it")
    first, reason = next(((n, r) for n, r in bad.items() if r != "not a picture"), next(iter(bad.items())))
    files = "the only file" if len(bad) == 1 else f"none of the {len(bad)} files"
    verb = "is no picture" if len(bad) == 1 else "is a picture"
    raise UserError(f"data '{root}': {files} {verb} that can be read; {first!r}: {reason}")
