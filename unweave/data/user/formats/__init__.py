"""The file formats that user data may have: one module per format, listed here."""

from pathlib import Path

from unweave.data.user.formats import npy, npz
from unweave.data.user.formats.array_format import ArrayFormat

FORMATS: tuple[ArrayFormat, ...] = (
    npy.FORMAT,
    npz.FORMAT,
)
ACCEPTED = f"a folder of images or a file ({', '.join(suffix for format in FORMATS for suffix in format.suffixes)})"


def find_format(path: Path) -> ArrayFormat | None:
    """Return the format of a file by the suffix of its name; None if there is none."""
    name = path.name.lower()
    return next((format for format in FORMATS if name.endswith(format.suffixes)), None)
