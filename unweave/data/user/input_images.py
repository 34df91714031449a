"""Read image files given to a trained model."""

import warnings
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np

from unweave.data.dataset import Dataset
from unweave.data.storage.regular_file import irregular_kind, read_regular
from unweave.data.user.image_io import Preprocessing, UnreadableImageError, decode_image
from unweave.errors import UserError, invalid

SUFFIXES = (
    ".png", ".jpg", ".jpeg", ".bmp", ".gif", ".tif", ".tiff", ".webp", ".ppm", ".pgm", ".pbm", ".pnm"
)  # fmt: skip


def unreadable_image(path: Path, reason: object) -> UserError:
    """Return the error for an image file that cannot be read."""
    accepted = "an image file such as .png or .jpg"
    message = f"image {str(path)!r} cannot be read ({reason}); pass {accepted}"
    return UserError(message, argument="images", value=str(path), accepted=accepted)


def input_preprocessing(data: Dataset) -> Preprocessing:
    """Return the preprocessing with which image files become images like those of the data.

    Data that were not prepared by a `Preprocessing` (rendered, published, or of an older version) have the default one.
    """
    channels, height, width = data.shape
    if channels not in (1, 3):
        hint = f"the model reads images of {channels} channels: call encode with an array of them"
        raise invalid("images", "image files", "arrays", hint=hint)
    preprocessing = data.preprocessing or Preprocessing()
    return preprocessing._replace(size=(height, width), channels="gray" if channels == 1 else "rgb")


def read_images(paths: Sequence[Path], preprocessing: Preprocessing) -> np.ndarray:
    """Return image files as [N, C, H, W] in 0..1; raise a UserError that names the first that cannot be read."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about unusual but readable files
        return np.stack([_read_image(path, preprocessing) for path in paths])


def _read_image(path: Path, preprocessing: Preprocessing) -> np.ndarray:
    try:
        return decode_image(read_regular(path), preprocessing)[0] / np.float32(255.0)
    except MemoryError as error:
        raise unreadable_image(path, "it does not fit into memory") from error
    except UnreadableImageError as error:
        raise unreadable_image(path, error) from error
    except OSError as error:
        raise unreadable_image(path, error.strerror or error) from error


def image_files(paths: str | Path | Iterable[str | Path]) -> list[Path]:
    """Return the given files and the image files inside the given folders."""
    given = [Path(paths)] if isinstance(paths, str | Path) else [Path(path) for path in paths]
    files: list[Path] = []
    for path in given:
        if path.is_dir():
            files += sorted(p for p in path.rglob("*") if p.suffix.lower() in SUFFIXES and not p.is_dir())
        elif path.exists():
            files.append(path)
        else:
            raise unreadable_image(path, "it does not exist")
    for path in files:
        if kind := irregular_kind(path):
            raise unreadable_image(path, f"it is {kind}")
    if not files:
        raise invalid("images", [str(p) for p in given], "image files such as .png or .jpg, or folders of them")
    return files
