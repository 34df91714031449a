"""Read image files given to a trained model."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import numpy as np
from PIL import Image, ImageOps

from unweave.errors import UserError

SUFFIXES = {".png", ".jpg", ".jpeg", ".bmp", ".gif", ".tif", ".tiff", ".webp"}


def read_image(path: Path, shape: tuple[int, int, int]) -> np.ndarray:
    """One image file as [C, H, W] in 0..1, brought to the model's size and channels; what is transparent is black."""
    try:
        with Image.open(path) as file:
            picture = _opaque(ImageOps.exif_transpose(file)).convert("L" if shape[0] == 1 else "RGB")
            small = picture.resize((shape[2], shape[1]), Image.Resampling.BOX)
    except Exception as error:  # decoders of broken files raise nearly anything
        raise UserError(f"image '{path}' cannot be read ({error}); give picture files such as .png or .jpg") from error
    array = np.asarray(small, dtype=np.float32) / 255.0
    return array[None] if array.ndim == 2 else array.transpose(2, 0, 1)


def _opaque(picture: Image.Image) -> Image.Image:
    """The picture in 8 bits without transparency. Pillow by itself cuts 16 bits off at 255 and shows hidden colours."""
    if picture.mode.startswith("I"):
        return Image.fromarray((np.asarray(picture) / 257.0).round().clip(0, 255).astype(np.uint8))
    if picture.mode in ("RGBA", "LA", "PA", "RGBa", "La") or "transparency" in picture.info:
        seen = picture.convert("RGBA")
        return Image.alpha_composite(Image.new("RGBA", seen.size, (0, 0, 0, 255)), seen)
    return picture


def image_files(paths: str | Path | Iterable[str | Path]) -> list[Path]:
    """The files named, and the pictures inside the folders named."""
    named = [Path(paths)] if isinstance(paths, str | Path) else [Path(path) for path in paths]
    found: list[Path] = []
    for path in named:
        if path.is_dir():
            found += sorted(p for p in path.rglob("*") if p.suffix.lower() in SUFFIXES and p.is_file())
        elif path.exists():
            found.append(path)
        else:
            raise UserError(f"image '{path}' does not exist; give picture files or folders of them")
    if not found:
        raise UserError(
            f"images: no picture found in {', '.join(map(str, named)) or 'nothing'}; give .png or .jpg files"
        )
    return found
