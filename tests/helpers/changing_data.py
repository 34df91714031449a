"""Small random data sets of every kind, and changes of their files and arrays, for tests of run histories.

Shape letters: N images, S side.
"""

import csv
import hashlib
import io
import os
import random
import shutil
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
from PIL import Image

from unweave.data import VIEWS, Dataset, load_data
from unweave.data.callspec import call_text

IN_MEMORY = ("array", "items")
WITH_TABLE = ("table", "npy")
KINDS = ("folder", "table", "npz", "npy", *IN_MEMORY, "digits")
WORDS = ("data", "factor", "images", "label", "table")  # an error about changed data contains one of them


@dataclass(frozen=True)
class Content:
    """What a data set contains, however it is stored."""

    names: tuple[str, ...]
    images: np.ndarray  # bytes [N, S, S] or [N, S, S, 3]
    factors: dict[str, tuple]  # factor -> the value of each image, None if missing

    def key(self) -> str:
        return hashlib.sha256(self.images.tobytes() + repr((self.names, self.factors)).encode()).hexdigest()


def random_content(kind: str, draw: random.Random) -> Content:
    """Return 20 to 60 images of 8 x 8 pixels; the factor `a`, which supervision uses, has no missing values."""
    count, colour = draw.randint(20, 60), draw.random() < 0.3
    images = np.random.default_rng(draw.getrandbits(32)).integers(
        0, 256, (count, 8, 8, 3)[: 3 + colour], dtype=np.uint8
    )
    names = tuple(f"{'ab'[n % 2] if kind == 'folder' else 'all'}/{n:03}.png" for n in range(count))
    texts = kind in WITH_TABLE and draw.random() < 0.5
    a = [n % 3 for n in range(count)]
    draw.shuffle(a)
    factors = {
        "a": tuple(["red", "green", "blue"][value] if texts else value for value in a),
        "b": tuple(None if draw.random() < 0.1 else draw.randrange(4) for _ in range(count)),
        "c": tuple(None if draw.random() < 0.1 else draw.randrange(1, 400) / 4 for _ in range(count)),
    }
    kept = () if kind == "folder" else ("a", "b", "c")[: draw.randint(2, 3)]
    order = np.argsort(names) if kind == "folder" else np.arange(count)
    return Content(tuple(names[n] for n in order), images, {name: factors[name] for name in kept})


def random_view(kind: str, draw: random.Random) -> tuple[str, dict]:
    """Return a view and its options, or "" for the data set itself."""
    name = draw.choice(["", "", "", "split", "subset", "noisy", "correlated"])
    if name == "correlated" and kind in ("folder", "digits"):
        return "noisy", {"sigma": 0.2}
    options = {
        "split": {"fraction": 0.75, "seed": draw.randrange(3)},
        "subset": {"first": 18},
        "noisy": {"sigma": 0.1},
        "correlated": {"factors": ["a", "b"], "sigma": 0.5},
    }
    return name, options.get(name, {})


@dataclass
class Source:
    """A data set of one kind, with its files in a folder or as objects in memory."""

    kind: str
    content: Content
    folder: Path
    view: tuple[str, dict] = ("", {})
    row_order: list[int] = field(default_factory=list)  # of the table; empty: that of the images
    moved: bool = False

    def __post_init__(self) -> None:
        self.original = self.content

    @property
    def in_memory(self) -> bool:
        return self.kind in IN_MEMORY

    def save(self, keep_times: bool = False) -> None:
        """Write the files that differ from the content; optionally give them their previous times."""
        files = self._files()
        present = {str(path.relative_to(self.folder)) for path in self.folder.rglob("*") if path.is_file()}
        for name in sorted(present - set(files)):
            (self.folder / name).unlink()
        for name, content in files.items():
            path = self.folder / name
            if name in present and path.read_bytes() == content:
                continue
            path.parent.mkdir(parents=True, exist_ok=True)
            before = path.stat() if name in present else None
            path.write_bytes(content)
            if keep_times and before is not None:
                os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))

    def _files(self) -> dict[str, bytes]:
        if self.kind in ("folder", "table"):
            pairs = zip(self.content.names, self.content.images, strict=True)
            files = {f"images/{name}": png(image) for name, image in pairs}
        elif self.kind == "npy":
            files = {"images.npy": saved(np.save, self.content.images)}
        elif self.kind == "npz":
            names = np.array(list(self.content.factors))
            files = {
                "images.npz": saved(np.savez, images=self.content.images, factors=self._table(), factor_names=names)
            }
        else:
            files = {}
        return files | ({"table.csv": self._csv()} if self.kind in WITH_TABLE else {})

    def _table(self) -> np.ndarray:
        columns = [[np.nan if value is None else value for value in values] for values in self.content.factors.values()]
        return np.array(columns, dtype=np.float64).T

    def _csv(self) -> bytes:
        text = io.StringIO()
        rows = list(zip(self.content.names, *self.content.factors.values(), strict=True))
        header = ("file", *self.content.factors) if self.kind == "table" else tuple(self.content.factors)
        writer = csv.writer(text)
        writer.writerow(header)
        for n in self.row_order or range(len(rows)):
            writer.writerow(["" if value is None else value for value in rows[n][-len(header) :]])
        return text.getvalue().encode()

    def given(self) -> str | Dataset:
        """Return what is passed as `data`: a text, or a new object for data in memory."""
        if self.in_memory:
            data = self._object()
            return VIEWS[self.view[0]](data, **self.view[1]) if self.view[0] else data
        path, factors = str(self.folder / f"images.{self.kind}"), {}
        if self.kind in WITH_TABLE:
            factors = {"factors": str(self.folder / "table.csv")}
        if self.kind in ("folder", "table"):
            text = call_text("folder", {"path": str(self.folder / "images"), "size": 8, **factors})
        else:
            text = "digits(size=8)" if self.kind == "digits" else call_text("arrays", {"path": path, **factors})
        return call_text(self.view[0], {"data": text, **self.view[1]}) if self.view[0] else text

    def _object(self) -> Dataset:
        names, table = list(self.content.factors), self._table()
        if self.kind == "array":
            return load_data(self.content.images.copy(), factors=table, names=names)
        return load_data([(image, *row) for image, row in zip(self.content.images, table.tolist())], names=names)


def png(image: np.ndarray) -> bytes:
    """Return an uncompressed PNG file: files of equal shape have equal size."""
    buffer = io.BytesIO()
    Image.fromarray(image).save(buffer, "png", compress_level=0)
    return buffer.getvalue()


def saved(write, *arrays, **named) -> bytes:
    buffer = io.BytesIO()
    write(buffer, *arrays, **named)
    return buffer.getvalue()


# --- changes of a source; each returns what it did, or None if it does not apply ------------------------------------


def change_pixels(source: Source, draw: random.Random) -> str | None:
    """Invert one image or one pixel; the files keep their sizes and, half of the time, their times."""
    images, n, keep_times = source.content.images.copy(), draw.randrange(len(source.content.names)), draw.random() < 0.5
    part = draw.choice(["image", "pixel"])
    where = (n, ...) if part == "image" else (n, draw.randrange(8), draw.randrange(8))
    images[where] ^= 255
    source.content = replace(source.content, images=images)
    source.save(keep_times)
    return f"invert a {part} of image {n}" + ", same size and time" * keep_times


def add_image(source: Source, draw: random.Random) -> str:
    content, n = source.content, len(source.content.names)
    name = f"{content.names[-1].split('/')[0]}/{900 + n}.png"
    factors = {factor: (*values, values[0]) for factor, values in content.factors.items()}
    source.content = Content((*content.names, name), np.concatenate([content.images, content.images[:1] ^ 85]), factors)
    source.row_order = []
    source.save()
    return "add an image"


def remove_image(source: Source, draw: random.Random) -> str:
    content, n = source.content, draw.randrange(len(source.content.names))
    factors = {factor: values[:n] + values[n + 1 :] for factor, values in content.factors.items()}
    names = content.names[:n] + content.names[n + 1 :]
    source.content, source.row_order = Content(names, np.delete(content.images, n, axis=0), factors), []
    source.save()
    return f"remove image {n}"


def change_cell(source: Source, draw: random.Random) -> str | None:
    if not source.content.factors:
        return None
    name, keep_times = draw.choice(list(source.content.factors)), draw.random() < 0.5
    values = list(source.content.factors[name])
    n = draw.randrange(len(values))
    values[n] = draw.choice(sorted({value for value in values if value not in (None, values[n])}))
    source.content = replace(source.content, factors={**source.content.factors, name: tuple(values)})
    source.save(keep_times)
    return f"change {name} of row {n}" + ", same time" * keep_times


def swap_labels(source: Source, draw: random.Random) -> str | None:
    if not source.content.factors:
        return None
    values = list(source.content.factors["a"])
    draw.shuffle(values)
    source.content = replace(source.content, factors={**source.content.factors, "a": tuple(values)})
    source.save()
    return "shuffle the values of a"


def rename_factor(source: Source, draw: random.Random) -> str | None:
    if not source.content.factors:
        return None
    names = {**{name: name for name in source.content.factors}, "b": "renamed"}
    source.content = replace(source.content, factors={names[n]: v for n, v in source.content.factors.items()})
    source.save()
    return "rename factor b"


def permute_rows(source: Source, draw: random.Random) -> str | None:
    """Permute the rows of a table of file names, which changes nothing."""
    if source.kind != "table":
        return None
    source.row_order = draw.sample(range(len(source.content.names)), len(source.content.names))
    source.save()
    return "permute the rows of the table"


def touch_files(source: Source, draw: random.Random) -> str | None:
    """Give all files another time, or write them again: changes nothing."""
    files = [path for path in source.folder.rglob("*") if path.is_file()]
    rewrite = draw.random() < 0.5
    for path in files:
        if rewrite:
            path.write_bytes(path.read_bytes())
        os.utime(path, (1e9, 1e9))
    return ("write all files again" if rewrite else "touch all files") if files else None


def restore_content(source: Source, draw: random.Random) -> str | None:
    """Undo all changes of the content."""
    if source.content is source.original:
        return None
    source.content, source.row_order = source.original, []
    source.save()
    return "restore the content of the data"


def move_files(source: Source, draw: random.Random) -> str | None:
    """Move the folder of the data away, or back."""
    if source.in_memory or source.kind == "digits":
        return None
    away = source.folder.with_name("moved")
    shutil.move(*((away, source.folder) if source.moved else (source.folder, away)))
    source.moved = not source.moved
    return "move the data " + ("away" if source.moved else "back")


HARMLESS = (permute_rows, touch_files)
HARMFUL = (change_pixels, add_image, remove_image, change_cell, swap_labels, rename_factor, move_files)
CHANGES = (*HARMFUL, *HARMLESS, restore_content)
