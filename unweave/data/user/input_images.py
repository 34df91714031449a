"""Read image files given to a trained model."""

from collections.abc import Iterable
from pathlib import Path

import numpy as np
from PIL import Image, ImageOps

from unweave.data.dataset import Dataset
from unweave.data.user.image_io import UnreadableImageError, decode_image, opaque
from unweave.errors import UserError, invalid

SUFFIXES = {".png", ".jpg", ".jpeg", ".bmp", ".gif", ".tif", ".tiff", ".webp"}


def unreadable_image(path: Path, reason: object) -> UserError:
    """Return the error for an image file that cannot be read."""
    accepted = "an image file such as .png or .jpg"
    message = f"image {str(path)!r} cannot be read ({reason}); pass {accepted}"
    return UserError(message, argument="images", value=str(path), accepted=accepted)


def read_image(path: Path, shape: tuple[int, int, int]) -> np.ndarray:
    """Return an image file as [C, H, W] in 0..1 with the model's size and channels; transparent parts become black."""
    try:
        with Image.open(path) as file:
            image = _opaque_8_bits(ImageOps.exif_transpose(file)).convert("L" if shape[0] == 1 else "RGB")
            resized = image.resize((shape[2], shape[1]), Image.Resampling.BOX)
    except Exception as error:  # decoding a damaged file can cause almost any exception
        raise unreadable_image(path, error) from error
    array = np.asarray(resized, dtype=np.float32) / 255.0
    return array[None] if array.ndim == 2 else array.transpose(2, 0, 1)


def _opaque_8_bits(image: Image.Image) -> Image.Image:
    """Return the image in 8 bits without transparency. Pillow would clip 16 bits at 255 and show hidden colours."""
    if image.mode.startswith("I"):
        return Image.fromarray((np.asarray(image) / 257.0).round().clip(0, 255).astype(np.uint8))
    return opaque(image, "black")


def read_image_like(data: Dataset, path: Path) -> np.ndarray:
    """Return an image file as [C, H, W] in 0..1, preprocessed as the images of the data if those were files too."""
    if data.preprocessing is None:
        return read_image(path, data.shape)
    try:
        return decode_image(path.read_bytes(), data.preprocessing)[0] / np.float32(255.0)
    except (UnreadableImageError, OSError) as error:
        raise unreadable_image(path, error) from error


def image_files(paths: str | Path | Iterable[str | Path]) -> list[Path]:
    """Return the given files and the image files inside the given folders."""
    given = [Path(paths)] if isinstance(paths, str | Path) else [Path(path) for path in paths]
    files: list[Path] = []
    for path in given:
        if path.is_dir():
            files += sorted(p for p in path.rglob("*") if p.suffix.lower() in SUFFIXES and p.is_file())
        elif path.exists():
            files.append(path)
        else:
            raise unreadable_image(path, "it does not exist")
    if not files:
        raise invalid("images", [str(p) for p in given], "image files such as .png or .jpg, or folders of them")
    return files
