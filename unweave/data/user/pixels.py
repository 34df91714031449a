"""Convert arrays of images of any layout and dtype to bytes, or floats in 0..1.

Shape letters: N observations, C channels, H height, W width.
"""

from collections.abc import Callable, Iterator
from typing import NamedTuple, Self

import numpy as np

from unweave.data.user.image_io import MAX_16_BIT, Preprocessing, prepare_levels
from unweave.data.user.notes import channels_note, values_note
from unweave.data.user.value_range import (
    are_divided_bytes,
    float_levels,
    integer_levels,
    unit_floats,
    value_type,
    white_of,
)
from unweave.errors import UserError, check_choice, check_integer, invalid

LAYOUTS = ("NCHW", "NHWC", "NHW")
CURRENT_RULES = 2  # of layouts and transparency; a run stores the version that its arrays were read by
_MAX_CHANNELS = 4  # an axis of the shape with more entries is not recognised as the channels
_CHUNK = 16 << 20  # bytes of images converted at once


class ArrayOptions(NamedTuple):
    """Options of arrays of images."""

    layout: str | None = None  # None: recognised by the shape
    size: int | None = None  # None keeps the size
    fit: str = "crop"
    channels: str = "auto"  # auto keeps the channels
    background: str = "white"
    white: int | None = None  # None: 1, 255 or 65535, the smallest that no integer exceeds
    alpha: bool = False  # whether the last of 2 or 4 channels is transparency

    def checked(self) -> Self:
        """Return these options; raise a UserError if one is not valid."""
        if self.layout is not None:
            check_choice("layout", self.layout, LAYOUTS)
        if self.size is not None:
            check_integer("size", self.size, 8, 512)
        if not isinstance(self.alpha, bool):
            raise invalid("alpha", self.alpha, "True or False")
        self.preprocessing.checked()
        return self

    @property
    def preprocessing(self) -> Preprocessing:
        """Preprocessing of one image."""
        white = MAX_16_BIT if self.white is None else self.white
        return Preprocessing(0 if self.size is None else self.size, self.fit, self.channels, self.background, white)

    @property
    def keeps_images(self) -> bool:
        """True if only the values of the images may change."""
        return self.size is None and self.channels == "auto" and not self.alpha

    def check_channels(self, count: int, context: str) -> None:
        """Raise if the options do not fit images of this many channels."""
        if self.alpha and count not in (2, 4):
            raise invalid("alpha", True, f"left out for images of {count} channels", context=context)
        if self.channels != "auto" and count not in (1, 3) and not self.alpha:
            hint = "alpha=True if the last channel is transparency" if count in (2, 4) else ""
            accepted = f"left out for images of {count} channels"
            raise invalid("channels", self.channels, accepted, context=context, hint=hint)

    def value_type(self, dtype: np.dtype, context: str) -> str:
        """Return "float", "bool" or the name of an integer type; raise if images cannot be of this type."""
        type = value_type(dtype, context)
        if self.white is not None and type in ("float", "bool"):
            raise invalid("white", self.white, f"left out for images of type {dtype}", context=context)
        return type

    def stored(self, shape: tuple[int, ...], dtype: str, white: int) -> Preprocessing:
        """Return the preprocessing with which image files become images like those of the set."""
        own_white = self.white if self.white is not None else white if dtype == "uint16" and white > 1 else MAX_16_BIT
        channels = {1: "gray", 3: "rgb"}.get(shape[0], "auto")
        return self.preprocessing._replace(size=shape[1:], channels=channels, white=own_white)  # type: ignore[arg-type]


class Pixels(NamedTuple):
    """Converted images."""

    images: np.ndarray  # [N, C, H, W], bytes or float32 in 0..1
    notes: tuple[str, ...]  # how they were converted
    preprocessing: Preprocessing  # with which image files become images like these


def to_pixels(images: np.ndarray, context: str, options: ArrayOptions) -> Pixels:
    """Return images of any layout and dtype as [N, C, H, W] in bytes or floats in 0..1; bytes are not copied."""
    options.checked()
    shape = list(images.shape)
    if images.ndim not in (3, 4) or not images.size:
        raise invalid("images", shape, "of shape [N, C, H, W], [N, H, W, C] or [N, H, W]", context=context)
    given = channels_first(images, context, options.layout)
    options.check_channels(given.shape[1], context)
    type = options.value_type(images.dtype, context)
    if type == "float":
        white, high, pixels = 255, 0, _floats(given, context, options)
    else:
        white, high = _white(given, context, options)
        pixels = _integers(given, white, options)
    if len(pixels) < 2:
        raise invalid("images", shape, "at least two images", context=context)
    values = values_note(type, white, high) if type != "float" else ""
    notes = [values, channels_note(given.shape[1], options.background, options.alpha)]
    stored = options.stored(pixels.shape[1:], type, white)
    return Pixels(pixels, tuple(filter(None, notes)), stored)


def channels_first(images: np.ndarray, context: str, layout: str | None) -> np.ndarray:
    """Return images [N, C, H, W].

    The axis with up to 4 entries is the channels. If both or none of the possible axes are, the layout must be given.
    """
    shape = list(images.shape)
    if layout is not None:
        if len(layout) != images.ndim:
            raise invalid("layout", layout, f"a layout of the {images.ndim} axes of {shape}", context=context)
    elif images.ndim == 3:
        layout = None if shape[2] <= _MAX_CHANNELS else "NHW"
    elif (shape[1] <= _MAX_CHANNELS) != (shape[3] <= _MAX_CHANNELS):
        layout = "NCHW" if shape[1] <= _MAX_CHANNELS else "NHWC"
    if layout is None:
        found = "NHW or one image HWC" if images.ndim == 3 else "NCHW or NHWC"
        message = f"{context}: images of shape {shape} may be {found}; pass layout="
        raise UserError(message, argument="layout", value=shape, accepted=LAYOUTS)
    if images.ndim == 3:
        return images[:, None]
    return images.transpose(0, 3, 1, 2) if layout == "NHWC" else images


def options_of_rules_1(images: np.ndarray, options: ArrayOptions) -> ArrayOptions:
    """Return the options that earlier versions assumed: NCHW unless NHWC is certain, four channels with alpha."""
    if images.ndim != 4:
        return options._replace(layout="NHW")
    layout = options.layout or ("NHWC" if images.shape[3] in (1, 3, 4) else "NCHW")
    return options._replace(layout=layout, alpha=images.shape[3 if layout == "NHWC" else 1] == 4)


def _chunks(images: np.ndarray) -> Iterator[tuple[slice, np.ndarray]]:
    count = max(1, _CHUNK // max(1, images[0].nbytes))
    for start in range(0, len(images), count):
        part = slice(start, start + count)
        yield part, images[part]


def _white(images: np.ndarray, context: str, options: ArrayOptions) -> tuple[int, int]:
    """Return the integer that is white, and the largest value; of bytes the largest one of a sample, if above 1."""
    if images.dtype == np.uint8 and options.white is None:
        high = int(images[:: max(1, len(images) // 1000)].max())
        if high > 1:
            return 255, high
    ends = [(int(chunk.min()), int(chunk.max())) for _, chunk in _chunks(images)]
    low, high = min(low for low, _ in ends), max(high for _, high in ends)
    return options.white or white_of(low, high, context), high


def _integers(images: np.ndarray, white: int, options: ArrayOptions) -> np.ndarray:
    if white == 255 and images.dtype == np.uint8 and options.keeps_images:
        return images
    return _convert(images, options, lambda chunk: integer_levels(chunk, white))


def _floats(images: np.ndarray, context: str, options: ArrayOptions) -> np.ndarray:
    """Return bytes if the floats are divided bytes or every image is converted, otherwise float32."""
    as_bytes = True
    for _, chunk in _chunks(images):
        floats = unit_floats(chunk, context)
        as_bytes = as_bytes and (not options.keeps_images or are_divided_bytes(floats))
    if not as_bytes:
        return images.astype(np.float32, copy=False)
    return _convert(images, options, lambda chunk: float_levels(chunk.astype(np.float32, copy=False)))


def _convert(images: np.ndarray, options: ArrayOptions, to_levels: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
    """Return all images in bytes and preprocessed; the memory is that of the given images and of the result."""
    result = np.empty(0, np.uint8)
    for part, chunk in _chunks(images):
        levels = prepare(to_levels(chunk), options)
        if not part.start:
            result = np.empty((len(images), *levels.shape[1:]), np.uint8)
        result[part] = levels
    return result


def prepare(levels_NCHW: np.ndarray, options: ArrayOptions) -> np.ndarray:
    """Apply to every image the preprocessing of image files."""
    if options.keeps_images:
        return levels_NCHW
    return np.stack([prepare_levels(levels, options.preprocessing, options.alpha) for levels in levels_NCHW])
