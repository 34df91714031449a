"""One picture file of any size and kind, as the bytes a model sees.

Shape letters: C channels, H height, W width.
"""

from __future__ import annotations

import io
import re
from typing import NamedTuple

import numpy as np
from PIL import Image, ImageColor, ImageOps, UnidentifiedImageError

from unweave.errors import UserError, check_choice, check_integer

FITS = ("crop", "pad", "stretch")
CHANNELS = ("auto", "gray", "rgb")
_DEEP = 65535  # the brightest value of 16 bits
_CLEAR = ("RGBA", "LA", "PA", "RGBa", "La")


class Preprocessing(NamedTuple):
    """What is done to every picture."""

    size: int = 64  # side in pixels; 0 leaves it as it is
    fit: str = "crop"  # of a picture that is not square: its middle, all of it with margins, or all of it squeezed
    channels: str = "auto"
    background: str = "white"  # behind what is transparent, and in the margins
    white: int = _DEEP  # the value of 16-bit pictures that is full white

    def checked(self) -> Preprocessing:
        if self.size:
            check_integer("size", self.size, 8, 512)
        check_integer("white", self.white, 1, _DEEP)
        check_choice("fit", self.fit, FITS)
        check_choice("channels", self.channels, CHANNELS)
        try:
            ImageColor.getrgb(self.background)
        except (ValueError, AttributeError, TypeError):
            raise UserError(
                f"background={self.background!r} is no colour; use a name such as 'black', or '#rrggbb'"
            ) from None
        return self


class Facts(NamedTuple):
    """What a picture was before anything was done to it."""

    format: str  # "PNG"
    mode: str  # as Pillow calls it: "RGB", "L", "I;16"
    size: tuple[int, int]  # width, height
    traits: tuple[str, ...]  # what needed care
    brightest: int = 0  # the largest value of a 16-bit picture


class UnreadableImageError(Exception):
    """Why a file gives no picture, in a few words."""


def decode_image(content: bytes, preprocessing: Preprocessing) -> tuple[np.ndarray, Facts]:
    """The picture [C, H, W] in bytes, with three channels unless grey is asked for, and what it was."""
    if not content:
        raise UnreadableImageError("the file is empty")
    try:
        with Image.open(io.BytesIO(content)) as file:
            return _prepared(file, preprocessing)
    except UnreadableImageError:
        raise
    except UnidentifiedImageError:
        raise UnreadableImageError("not a picture") from None
    except Exception as error:  # decoders of broken files raise nearly anything
        why = re.sub(r"\s*\(.*\)$", "", " ".join(str(error).split())) or type(error).__name__
        raise UnreadableImageError(f"broken ({why})") from error


def _prepared(file: Image.Image, preprocessing: Preprocessing) -> tuple[np.ndarray, Facts]:
    format, mode, size = file.format or "", file.mode, file.size
    traits = _traits(file, preprocessing)
    # A large JPEG need not be decoded in full: what is left has at least twice the side that is wanted.
    file.draft(None, (2 * preprocessing.size, 2 * preprocessing.size))  # type: ignore[arg-type]
    picture, brightest = _eight_bits(_upright(file), preprocessing)
    return preprocess_image(picture, preprocessing), Facts(format, mode, size, traits, brightest)


def preprocess_image(picture: Image.Image, preprocessing: Preprocessing) -> np.ndarray:
    """An 8-bit picture as it was asked for [C, H, W]."""
    plain = _opaque(picture, preprocessing.background).convert("L" if preprocessing.channels == "gray" else "RGB")
    pixels = np.asarray(_fitted(plain, preprocessing))
    return pixels[None] if pixels.ndim == 2 else pixels.transpose(2, 0, 1)


def _traits(file: Image.Image, preprocessing: Preprocessing) -> tuple[str, ...]:
    width, height = file.size
    found = {
        "frames": getattr(file, "n_frames", 1) > 1,
        "transparent": _see_through(file),
        "deep": file.mode.startswith("I"),
        "turned": _orientation(file) != 1,
        "oblong": width != height,
        "small": min(width, height) < preprocessing.size,
    }
    return tuple(name for name, true in found.items() if true)


def _see_through(picture: Image.Image) -> bool:
    return picture.mode in _CLEAR or "transparency" in picture.info


def _orientation(file: Image.Image) -> int:
    try:
        return int(file.getexif().get(0x0112, 1))
    except Exception:  # a broken note about a picture is no reason to lose the picture
        return 1


def _upright(file: Image.Image) -> Image.Image:
    if _orientation(file) == 1:
        file.load()
        return file
    return ImageOps.exif_transpose(file)


def _eight_bits(picture: Image.Image, preprocessing: Preprocessing) -> tuple[Image.Image, int]:
    """The picture in 8 bits a channel, and its brightest value if it had 16. Pillow by itself cuts off at 255."""
    if picture.mode.startswith("I"):
        values = np.asarray(picture).astype(np.int64)
        low, high = int(values.min()), int(values.max())
        if low < 0 or high > _DEEP:
            raise UnreadableImageError(f"values from {low} to {high}; 16 bits are accepted")
        return Image.fromarray((values * (255.0 / preprocessing.white)).round().clip(0, 255).astype(np.uint8)), high
    if picture.mode == "F":
        floats = np.asarray(picture)
        if not (np.isfinite(floats).all() and floats.min() >= 0.0 and floats.max() <= 1.0):
            raise UnreadableImageError(f"floats from {floats.min():g} to {floats.max():g}; 0 to 1 is accepted")
        return Image.fromarray((floats * 255.0).round().astype(np.uint8)), 0
    return picture, 0


def _opaque(picture: Image.Image, background: str) -> Image.Image:
    """Transparent pictures laid on the background; Pillow by itself would show colours that were hidden."""
    if not _see_through(picture):
        return picture
    seen = picture.convert("LA" if picture.mode == "La" else "RGBA").convert("RGBA")
    return Image.alpha_composite(Image.new("RGBA", seen.size, ImageColor.getrgb(background)), seen)


def _fitted(picture: Image.Image, preprocessing: Preprocessing) -> Image.Image:
    """Shrunk by averaging, which neither rings nor flickers; enlarged smoothly."""
    side = (preprocessing.size, preprocessing.size)
    if not preprocessing.size or picture.size == side:
        return picture
    shrinks = min(picture.size) >= preprocessing.size
    filter = Image.Resampling.BOX if shrinks else Image.Resampling.BICUBIC
    if preprocessing.fit == "crop":
        return ImageOps.fit(picture, side, filter)
    if preprocessing.fit == "pad":
        colour = ImageColor.getcolor(preprocessing.background, picture.mode)
        return ImageOps.pad(picture, side, filter, color=colour)  # type: ignore[arg-type]
    return picture.resize(side, filter)
