"""Read files of a folder or an archive by name, without unpacking the archive to disk."""

import io
import tarfile
import zipfile
from pathlib import Path
from typing import Self

import numpy as np
from PIL import Image


class FileTree:
    """A folder, a zip or a tar archive. Names are in the order of the archive; those of a folder are sorted.

    Names in a folder begin with the name of the folder, as in an archive of it.
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
        # files of the system or of an editor are not data
        self.names = [n for n in names if not any(part.startswith((".", "__MACOSX")) for part in n.split("/") if part)]

    def read(self, name: str) -> bytes:
        if self.zip is not None:
            return self.zip.read(name)
        if self.tar is not None:
            file = self.tar.extractfile(name)
            assert file is not None
            return file.read()
        return (self.path.parent / name).read_bytes()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for archive in (self.zip, self.tar):
            if archive is not None:
                archive.close()


def read_image(content: bytes, mode: str, name: str) -> Image.Image:
    """Decode a PNG, JPEG or PGM image to the mode "L", "RGB" or "RGBA"."""
    try:
        image = Image.open(io.BytesIO(content), formats=("PNG", "JPEG", "PPM"))
        return image.convert(mode)
    except (OSError, SyntaxError, ValueError) as error:  # raised by Pillow for damaged images
        raise ValueError(f"image {name} cannot be read ({error})") from error


def resized(image: Image.Image, size: int) -> np.ndarray:
    """Return the image as bytes, resized to `size` pixels per side with Pillow's Lanczos filter."""
    if image.size != (size, size):
        image = image.resize((size, size), Image.Resampling.LANCZOS)
    return np.asarray(image)
