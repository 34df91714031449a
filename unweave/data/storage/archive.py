"""Files beneath a folder or inside an archive, read by name; nothing is ever unpacked to disk."""

from __future__ import annotations

import io
import tarfile
import zipfile
from pathlib import Path
from types import TracebackType

import numpy as np
from PIL import Image


class FileTree:
    """A folder, a zip or a tar archive. Names are in the order of the archive, those of a folder sorted.

    A folder's own name begins its names, so that they look as they would in an archive of it.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.zip: zipfile.ZipFile | None = None
        self.tar: tarfile.TarFile | None = None
        if path.is_dir():
            names = sorted(p.relative_to(path.parent).as_posix() for p in path.rglob("*") if p.is_file())
        elif zipfile.is_zipfile(path):
            self.zip = zipfile.ZipFile(path)
            names = [name for name in self.zip.namelist() if not name.endswith("/")]
        else:
            self.tar = tarfile.open(path)  # noqa: SIM115 closed by __exit__
            names = [member.name for member in self.tar if member.isfile()]
        # what a Mac or an editor leaves behind is not data
        self.names = [n for n in names if not any(part.startswith((".", "__MACOSX")) for part in n.split("/") if part)]

    def read(self, name: str) -> bytes:
        if self.zip is not None:
            return self.zip.read(name)
        if self.tar is not None:
            file = self.tar.extractfile(name)
            assert file is not None
            return file.read()
        return (self.path.parent / name).read_bytes()

    def __enter__(self) -> FileTree:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for archive in (self.zip, self.tar):
            if archive is not None:
                archive.close()


def read_image(content: bytes, mode: str, name: str) -> Image.Image:
    """A PNG, JPEG or PGM picture in the mode asked for: "L", "RGB" or "RGBA"."""
    try:
        image = Image.open(io.BytesIO(content), formats=("PNG", "JPEG", "PPM"))
        return image.convert(mode)
    except (OSError, SyntaxError, ValueError) as error:  # Pillow's ways to say that a picture is broken
        raise ValueError(f"picture {name} cannot be read ({error})") from error


def resized(image: Image.Image, size: int) -> np.ndarray:
    """The picture as bytes, `size` pixels a side, by Pillow's Lanczos filter unless it has that size."""
    if image.size != (size, size):
        image = image.resize((size, size), Image.Resampling.LANCZOS)
    return np.asarray(image)
