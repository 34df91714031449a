"""The preparation of images: from an image of any size and format to the bytes that a model receives.

Image files, images in memory and arrays all pass through `prepare_image` or `prepare_levels`, in training and when a
trained model reads new images, so that the same image gives the same bytes everywhere.

Shape letters: C channels, H height, W width.
"""

import errno
import io
import re
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import cache
from typing import Any, NamedTuple, Self

import numpy as np
from PIL import Image, ImageColor, ImageOps, UnidentifiedImageError

from unweave.errors import check_choice, check_integer, invalid

FITS = ("crop", "pad", "stretch")
CHANNELS = ("auto", "gray", "rgb")
# The only formats that are read. Pillow has readers for more, of which some start other programs (EPS: Ghostscript).
FORMATS = ("PNG", "JPEG", "BMP", "GIF", "TIFF", "WEBP", "PPM")
NOT_AN_IMAGE = "not an image in a known format"
MAX_16_BIT = 65535
_ALPHA_MODES = ("RGBA", "LA", "PA", "RGBa", "La")
_STRIP = 1 << 22  # pixels converted at once
_LARGE = 1 << 24  # larger images, in pixels, are decoded one after another
_large_image = threading.RLock()
_TURNS = {
    2: Image.Transpose.FLIP_LEFT_RIGHT, 3: Image.Transpose.ROTATE_180, 4: Image.Transpose.FLIP_TOP_BOTTOM,
    5: Image.Transpose.TRANSPOSE, 6: Image.Transpose.ROTATE_270, 7: Image.Transpose.TRANSVERSE,
    8: Image.Transpose.ROTATE_90,
}  # fmt: skip


class Preprocessing(NamedTuple):
    """Preprocessing of every image."""

    size: int | tuple[int, int] = 64  # side in pixels, or height and width; 0 keeps the size
    fit: str = "crop"  # of an image of another aspect ratio: crop to the middle, pad with margins, or stretch
    channels: str = "auto"
    background: str = "white"  # behind transparent parts, and in the margins
    white: int = MAX_16_BIT  # the value of 16-bit images that becomes 255

    @property
    def box(self) -> tuple[int, int] | None:
        """Width and height of the result; None if each image keeps its size."""
        if not isinstance(self.size, int):
            return self.size[1], self.size[0]
        return (self.size, self.size) if self.size else None

    def checked(self) -> Self:
        """Return these settings; raise a UserError if one is not valid."""
        if self.size:
            check_integer("size", self.size, 8, 512)
        check_integer("white", self.white, 1, MAX_16_BIT)
        check_choice("fit", self.fit, FITS)
        check_choice("channels", self.channels, CHANNELS)
        try:
            ImageColor.getrgb(self.background)
        except (ValueError, AttributeError, TypeError):
            raise invalid("background", self.background, "a colour name such as 'black', or '#rrggbb'") from None
        return self


class ImageInfo(NamedTuple):
    """An image before preprocessing."""

    format: str  # "PNG"; "" for an image in memory
    mode: str  # as in Pillow: "RGB", "L", "I;16"
    size: tuple[int, int]  # width, height
    traits: tuple[str, ...]  # properties that need special treatment; see `_traits`
    max_16_bit: int = 0  # largest value of a 16-bit image


class UnreadableImageError(Exception):
    """Something could not be read as an image; the text gives the reason."""


def decode_image(content: bytes, preprocessing: Preprocessing) -> tuple[np.ndarray, ImageInfo]:
    """Return the image of a file [C, H, W] in bytes and its description; C is 3 unless channels is "gray".

    Raise an UnreadableImageError if it cannot be read, and a MemoryError if memory does not suffice for it.
    """
    if not content:
        raise UnreadableImageError("the file is empty")
    with _image_errors(), Image.open(io.BytesIO(content), formats=FORMATS) as file:
        return _prepare(file, preprocessing, reduce=True)


def prepare_image(image: Image.Image, preprocessing: Preprocessing) -> tuple[np.ndarray, ImageInfo]:
    """Return the same for an image in memory."""
    with _image_errors():
        return _prepare(image, preprocessing, reduce=False)


def prepare_levels(levels_CHW: np.ndarray, preprocessing: Preprocessing, alpha: bool = False) -> np.ndarray:
    """Return the same for an array of bytes; with `alpha` the last of 2 or 4 channels is its opacity.

    Channels that are neither grey nor colour are resized one by one.
    """
    count = len(levels_CHW)
    if count not in ((1, 2, 3, 4) if alpha else (1, 3)):
        gray = preprocessing._replace(channels="gray")
        return np.concatenate([prepare_levels(channel[None], gray) for channel in levels_CHW])
    if preprocessing.channels == "auto":
        preprocessing = preprocessing._replace(channels="gray" if count <= 2 else "rgb")
    levels = levels_CHW[0] if count == 1 else levels_CHW.transpose(1, 2, 0)
    return prepare_image(Image.fromarray(np.ascontiguousarray(levels)), preprocessing)[0]


@contextmanager
def _image_errors() -> Iterator[None]:
    """Convert the exceptions of Pillow to an UnreadableImageError, or a MemoryError."""
    try:
        yield
    except (UnreadableImageError, MemoryError):
        raise
    except UnidentifiedImageError:
        raise UnreadableImageError(NOT_AN_IMAGE) from None
    except Image.DecompressionBombError:
        raise UnreadableImageError(f"more than {2 * (Image.MAX_IMAGE_PIXELS or 0):,} pixels") from None
    except Exception as error:  # decoding a damaged file can cause almost any exception
        if getattr(error, "errno", None) == errno.ENOMEM or "out of memory" in str(error):
            raise MemoryError(str(error)) from error
        reason = re.sub(r"\s*\(.*\)$", "", " ".join(str(error).split())) or type(error).__name__
        raise UnreadableImageError(f"damaged ({reason})") from error


def one_at_a_time(large: bool) -> AbstractContextManager[object]:
    """Return a context that only one thread enters at a time if its image is large, which bounds the memory."""
    return _large_image if large else nullcontext()


def _prepare(image: Image.Image, preprocessing: Preprocessing, *, reduce: bool) -> tuple[np.ndarray, ImageInfo]:
    format, mode, size, box = image.format or "", image.mode, image.size, preprocessing.box
    if reduce and box:  # decode a large JPEG at a reduced size, of at least twice the size that is needed
        image.draft(None, (2 * box[0], 2 * box[1]))  # type: ignore[arg-type]
    with one_at_a_time(image.width * image.height > _LARGE):
        orientation = _orientation(image)
        traits = _traits(image, size, box, orientation)
        image.load()
        opaque, max_16_bit = _opaque_8_bits(image, preprocessing)
        upright = opaque.transpose(_TURNS[orientation]) if orientation in _TURNS else opaque
        pixels = np.asarray(_resize(upright, preprocessing))
    channels_first = pixels[None] if pixels.ndim == 2 else pixels.transpose(2, 0, 1)
    return channels_first, ImageInfo(format, mode, size, traits, max_16_bit)


def _traits(
    image: Image.Image, size: tuple[int, int], box: tuple[int, int] | None, orientation: int
) -> tuple[str, ...]:
    width, height = size
    traits = {
        "frames": _frames(image) > 1,
        "transparent": _has_transparency(image),
        "16 bits": image.mode.startswith("I"),
        "rotated": orientation in _TURNS,
        "not square": box is not None and width * box[1] != height * box[0],
        "small": box is not None and (width < box[0] or height < box[1]),
    }
    return tuple(name for name, present in traits.items() if present)


def _has_transparency(image: Image.Image) -> bool:
    return image.mode in _ALPHA_MODES or "transparency" in image.info


def _frames(image: Image.Image) -> int:
    try:
        return getattr(image, "n_frames", 1)
    except Exception:  # of a file that is closed or damaged behind its first frame
        return 1


def _orientation(image: Image.Image) -> int:
    try:
        return int(image.getexif().get(0x0112, 1))
    except MemoryError:
        raise
    except Exception:  # damaged metadata is not a reason to reject the image
        return 1


# --- values and transparency ------------------------------------------------------------------------------------------


def _opaque_8_bits(image: Image.Image, preprocessing: Preprocessing) -> tuple[Image.Image, int]:
    """Return the image in 8 bits without transparency, and the largest value of a 16-bit image.

    Its mode is L if the result is grey or the image can only be grey, otherwise RGB. It is converted in strips, because
    copies of a large image would take several times its memory.
    """
    deep, transparent = image.mode.startswith(("I", "F")), _has_transparency(image)
    only_gray = (deep or image.mode in ("1", "L")) and not transparent
    mode = "L" if preprocessing.channels == "gray" or only_gray else "RGB"
    if image.mode == mode and not transparent:
        return image, 0
    to_levels, high = _depth_conversion(image, preprocessing.white) if deep else (None, 0)

    def convert(strip: Image.Image) -> Image.Image:
        levels = to_levels(strip) if to_levels else strip
        return _composite(levels, preprocessing.background).convert(mode)

    if image.width * image.height <= _STRIP:
        return convert(image), high
    result = Image.new(mode, image.size)
    for top, strip in _strips(image):
        result.paste(convert(strip), (0, top))
    return result, high


def _strips(image: Image.Image) -> Iterator[tuple[int, Image.Image]]:
    """Yield the position and the image of each strip of rows."""
    rows = max(1, _STRIP // image.width)
    for top in range(0, image.height, rows):
        yield top, image.crop((0, top, image.width, min(top + rows, image.height)))


def _depth_conversion(image: Image.Image, white: int) -> tuple[Callable[[Image.Image], Image.Image], int]:
    """Return the function that reduces strips of a 16-bit or float image to 8 bits, and the largest 16-bit value.

    Pillow would clip at 255.
    """
    ends = [(values.min(), values.max()) for values in (np.asarray(strip) for _, strip in _strips(image))]
    low, high = np.min([low for low, _ in ends]), np.max([high for _, high in ends])
    if image.mode == "F":
        if not (low >= 0.0 and high <= 1.0):  # also if NaN
            raise UnreadableImageError(f"floats from {low:g} to {high:g}; 0 to 1 is accepted")
        return lambda strip: Image.fromarray((np.asarray(strip) * np.float32(255.0)).round().astype(np.uint8)), 0
    if low < 0 or high > MAX_16_BIT:
        raise UnreadableImageError(f"values from {low} to {high}; 16 bits are accepted")
    return lambda strip: _levels_of_16_bits(strip, white), int(high)


def _levels_of_16_bits(strip: Image.Image, white: int) -> Image.Image:
    values = np.asarray(strip)
    levels, transparent = Image.fromarray(level_table(white)[values]), strip.info.get("transparency")
    if isinstance(transparent, int):  # this value is transparent
        levels.putalpha(Image.fromarray(np.where(values == transparent, 0, 255).astype(np.uint8)))
    return levels


@cache
def level_table(white: int) -> np.ndarray:
    """Return the byte of each value of 16 bits if `white` is full white."""
    return (np.arange(MAX_16_BIT + 1) * (255.0 / white)).round().clip(0, 255).astype(np.uint8)


def _composite(image: Image.Image, background: str) -> Image.Image:
    """Draw a transparent image on the background; Pillow's conversion would show hidden colours."""
    if not _has_transparency(image):
        return image
    rgba = image.convert("LA" if image.mode == "La" else "RGBA").convert("RGBA")
    return Image.alpha_composite(Image.new("RGBA", rgba.size, _colour(background, "RGB")), rgba)


def _colour(background: str, mode: str) -> Any:
    return ImageColor.getcolor(background, mode)


# --- size -------------------------------------------------------------------------------------------------------------


def _resize(image: Image.Image, preprocessing: Preprocessing) -> Image.Image:
    """Return the image in its final size and mode.

    It is reduced by averaging, which causes neither ringing nor aliasing, and enlarged by bicubic interpolation.
    """
    box, mode = preprocessing.box, "L" if preprocessing.channels == "gray" else "RGB"
    if box is None or image.size == box:
        return image.convert(mode)
    reduces = image.width >= box[0] and image.height >= box[1]
    filter = Image.Resampling.BOX if reduces else Image.Resampling.BICUBIC
    if preprocessing.fit == "crop":
        return ImageOps.fit(image, box, filter).convert(mode)
    if preprocessing.fit == "stretch":
        return image.resize(box, filter).convert(mode)
    if image.width / image.height > box[0] / box[1]:
        inner = box[0], max(1, round(image.height / image.width * box[0]))
    else:
        inner = max(1, round(image.width / image.height * box[1])), box[1]
    canvas = Image.new(mode, box, _colour(preprocessing.background, mode))
    corner = round((box[0] - inner[0]) * 0.5), round((box[1] - inner[1]) * 0.5)
    canvas.paste(image.resize(inner, filter).convert(mode), corner)
    return canvas
