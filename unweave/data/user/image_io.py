"""Decode an image file of any size and format into the bytes that a model receives.

Shape letters: C channels, H height, W width.
"""

import io
import re
from typing import NamedTuple, Self

import numpy as np
from PIL import Image, ImageColor, ImageOps, UnidentifiedImageError

from unweave.errors import check_choice, check_integer, invalid

FITS = ("crop", "pad", "stretch")
CHANNELS = ("auto", "gray", "rgb")
_MAX_16_BIT = 65535
_ALPHA_MODES = ("RGBA", "LA", "PA", "RGBa", "La")


class Preprocessing(NamedTuple):
    """Preprocessing of every image."""

    size: int = 64  # side in pixels; 0 keeps the size
    fit: str = "crop"  # of an image that is not square: crop to the middle, pad with margins, or stretch
    channels: str = "auto"
    background: str = "white"  # behind transparent parts, and in the margins
    white: int = _MAX_16_BIT  # the value of 16-bit images that becomes 255

    def checked(self) -> Self:
        """Return these settings; raise a UserError if one is not valid."""
        if self.size:
            check_integer("size", self.size, 8, 512)
        check_integer("white", self.white, 1, _MAX_16_BIT)
        check_choice("fit", self.fit, FITS)
        check_choice("channels", self.channels, CHANNELS)
        try:
            ImageColor.getrgb(self.background)
        except (ValueError, AttributeError, TypeError):
            raise invalid("background", self.background, "a colour name such as 'black', or '#rrggbb'") from None
        return self


def array_preprocessing(size: int | None, fit: str, channels: str, background: str) -> Preprocessing:
    """Return the preprocessing of arrays, which keep their size unless `size` is given."""
    size = 0 if size is None else check_integer("size", size, 8, 512)
    return Preprocessing(size, fit, channels, background).checked()


class ImageInfo(NamedTuple):
    """An image file before preprocessing."""

    format: str  # "PNG"
    mode: str  # as in Pillow: "RGB", "L", "I;16"
    size: tuple[int, int]  # width, height
    traits: tuple[str, ...]  # properties that need special treatment; see `_traits`
    max_16_bit: int = 0  # largest value of a 16-bit image


class UnreadableImageError(Exception):
    """A file could not be read as an image; the text gives the reason."""


def decode_image(content: bytes, preprocessing: Preprocessing) -> tuple[np.ndarray, ImageInfo]:
    """Return the image [C, H, W] in bytes and a description of the file; C is 3 unless channels is "gray"."""
    if not content:
        raise UnreadableImageError("the file is empty")
    try:
        with Image.open(io.BytesIO(content)) as file:
            return _decode(file, preprocessing)
    except UnreadableImageError:
        raise
    except UnidentifiedImageError:
        raise UnreadableImageError("not an image") from None
    except Exception as error:  # decoding a damaged file can cause almost any exception
        reason = re.sub(r"\s*\(.*\)$", "", " ".join(str(error).split())) or type(error).__name__
        raise UnreadableImageError(f"damaged ({reason})") from error


def _decode(file: Image.Image, preprocessing: Preprocessing) -> tuple[np.ndarray, ImageInfo]:
    format, mode, size = file.format or "", file.mode, file.size
    traits = _traits(file, preprocessing)
    # Decode a large JPEG at a reduced size, of at least twice the side that is needed.
    file.draft(None, (2 * preprocessing.size, 2 * preprocessing.size))  # type: ignore[arg-type]
    upright = file if _orientation(file) == 1 else ImageOps.exif_transpose(file)
    upright.load()
    image, max_16_bit = _to_8_bits(upright, preprocessing)
    return preprocess_image(image, preprocessing), ImageInfo(format, mode, size, traits, max_16_bit)


def preprocess_image(image: Image.Image, preprocessing: Preprocessing) -> np.ndarray:
    """Return an 8-bit image [C, H, W] with the size and channels of the preprocessing."""
    converted = opaque(image, preprocessing.background).convert("L" if preprocessing.channels == "gray" else "RGB")
    pixels = np.asarray(_resize(converted, preprocessing))
    return pixels[None] if pixels.ndim == 2 else pixels.transpose(2, 0, 1)


def _traits(file: Image.Image, preprocessing: Preprocessing) -> tuple[str, ...]:
    width, height = file.size
    traits = {
        "frames": getattr(file, "n_frames", 1) > 1,
        "transparent": _has_transparency(file),
        "16 bits": file.mode.startswith("I"),
        "rotated": _orientation(file) != 1,
        "not square": width != height,
        "small": min(width, height) < preprocessing.size,
    }
    return tuple(name for name, present in traits.items() if present)


def _has_transparency(image: Image.Image) -> bool:
    return image.mode in _ALPHA_MODES or "transparency" in image.info


def _orientation(file: Image.Image) -> int:
    try:
        return int(file.getexif().get(0x0112, 1))
    except Exception:  # damaged metadata is not a reason to reject the image
        return 1


def _to_8_bits(image: Image.Image, preprocessing: Preprocessing) -> tuple[Image.Image, int]:
    """Return the image with 8 bits per channel, and the largest value of a 16-bit image; Pillow would clip at 255."""
    if image.mode.startswith("I"):
        values = np.asarray(image).astype(np.int64)
        low, high = int(values.min()), int(values.max())
        if low < 0 or high > _MAX_16_BIT:
            raise UnreadableImageError(f"values from {low} to {high}; 16 bits are accepted")
        return Image.fromarray((values * (255.0 / preprocessing.white)).round().clip(0, 255).astype(np.uint8)), high
    if image.mode == "F":
        floats = np.asarray(image)
        if not (np.isfinite(floats).all() and floats.min() >= 0.0 and floats.max() <= 1.0):
            raise UnreadableImageError(f"floats from {floats.min():g} to {floats.max():g}; 0 to 1 is accepted")
        return Image.fromarray((floats * 255.0).round().astype(np.uint8)), 0
    return image, 0


def opaque(image: Image.Image, background: str) -> Image.Image:
    """Composite a transparent image over the background; Pillow's conversion would show hidden colours."""
    if not _has_transparency(image):
        return image
    rgba = image.convert("LA" if image.mode == "La" else "RGBA").convert("RGBA")
    return Image.alpha_composite(Image.new("RGBA", rgba.size, ImageColor.getrgb(background)), rgba)


def _resize(image: Image.Image, preprocessing: Preprocessing) -> Image.Image:
    """Reduce by averaging, which causes neither ringing nor aliasing; enlarge by bicubic interpolation."""
    side = (preprocessing.size, preprocessing.size)
    if not preprocessing.size or image.size == side:
        return image
    reduces = min(image.size) >= preprocessing.size
    filter = Image.Resampling.BOX if reduces else Image.Resampling.BICUBIC
    if preprocessing.fit == "crop":
        return ImageOps.fit(image, side, filter)
    if preprocessing.fit == "pad":
        colour = ImageColor.getcolor(preprocessing.background, image.mode)
        return ImageOps.pad(image, side, filter, color=colour)  # type: ignore[arg-type]
    return image.resize(side, filter)
