"""The images of items, which are read one after another: PIL images or arrays.

Their values, type and channels are decided for the whole set. Each image is converted by what is known when it is read.
When a later image changes that, for instance a value above 1 after images of 0 and 1, the earlier rows are adapted.

Shape letters: N items, C channels, H height, W width.
"""

from collections import Counter
from typing import Any

import numpy as np
from PIL import Image

from unweave.data.user.image_io import UnreadableImageError, prepare_image
from unweave.data.user.notes import STORED_IN_COLOUR, channels_note, conversion_notes, values_note
from unweave.data.user.pixels import ArrayOptions, Pixels, channels_first, prepare
from unweave.data.user.value_range import (
    are_divided_bytes,
    as_array,
    float_levels,
    integer_levels,
    unit_floats,
    white_of,
)
from unweave.errors import invalid

_PICTURES = "PIL images"


class ItemImages:
    """The images added so far, one row each."""

    def __init__(self, count: int, options: ArrayOptions) -> None:
        self.count, self.options = count, options
        self.rows: np.ndarray = np.empty((0, 0, 0, 0))  # allocated with the first image
        self.added = 0
        self.type = ""  # of the values: "PIL images", "float" or the name of an integer type
        self.white, self.high = options.white or 1, 0  # of integers: which is white, and the largest value
        self.channels = 0  # of arrays, before preprocessing
        self.modes: set[str] = set()  # of PIL images
        self.traits: Counter[str] = Counter()  # the number of PIL images with each trait of `ImageInfo`

    def add(self, image: Any) -> None:
        """Convert the image of the next item; raise a UserError that names the item if it does not fit the others."""
        context = f"item {self.added}"
        if isinstance(image, Image.Image):
            self._store(self._picture(image, context), context)
        else:
            self._store(self._array(image, context), context)

    def finish(self) -> Pixels:
        """Return all images."""
        preprocessing = self.options.stored(self.rows.shape[1:], self.type, self.white)
        return Pixels(self.rows, tuple(filter(None, self._notes())), preprocessing)

    def _picture(self, image: Image.Image, context: str) -> np.ndarray:
        self._check_type(_PICTURES, context)
        try:
            pixels, info = prepare_image(image, self.options.preprocessing)
        except (UnreadableImageError, MemoryError) as error:
            reason = str(error) or "out of memory"
            raise invalid("images", reason, "images that can be converted", context=context) from error
        self.modes.add(info.mode)
        self.traits.update(info.traits)
        self.high = max(self.high, info.max_16_bit)
        gray = self.options.channels == "auto" and bool((pixels == pixels[:1]).all())
        return pixels[:1] if gray else pixels

    def _array(self, image: Any, context: str) -> np.ndarray:
        array = as_array(image)
        if array.ndim not in (2, 3) or array.dtype.kind not in "buif" or not array.size:
            raise invalid("data", f"{type(image).__name__} of shape {list(array.shape)}", "an image", context=context)
        self._check_type(self.options.value_type(array.dtype, context), context)
        layout = self.options.layout if array.ndim == 3 else "NHW"
        image_NCHW = channels_first(array[None], context, layout)
        self.channels = image_NCHW.shape[1]
        self.options.check_channels(self.channels, context)
        if self.type != "float":
            return prepare(self._levels(image_NCHW, context), self.options)[0]
        floats = unit_floats(image_NCHW, context)
        if self.options.keeps_images and not are_divided_bytes(floats):
            return floats[0]
        return prepare(float_levels(floats), self.options)[0]

    def _check_type(self, type: str, context: str) -> None:
        if self.type not in ("", type):
            raise invalid("images", f"{type} after {self.type}", "of one type", context=context)
        self.type = type

    def _levels(self, values: np.ndarray, context: str) -> np.ndarray:
        low, high = int(values.min()), int(values.max())
        white = max(self.white, white_of(low, high, context)) if self.options.white is None else self.white
        if white != self.white and self.added:
            self._rescale(white, high, context)
        self.white, self.high = white, max(self.high, high)
        return integer_levels(values, white)

    def _rescale(self, white: int, high: int, context: str) -> None:
        """Convert the earlier rows to this new white."""
        if self.options.alpha or (self.options.size and self.options.fit == "pad"):  # the background is in the rows
            values = f"values up to {high} after values up to {self.high}"
            raise invalid("images", values, "of one range of values", context=context, hint=f"pass white={white}")
        table = (np.arange(256) * (self.white / white)).round().astype(np.uint8)
        for row in self.rows[: self.added]:
            row[...] = table[row]

    def _store(self, pixels: np.ndarray, context: str) -> None:
        if not self.added:
            self.rows = np.empty((self.count, *pixels.shape), pixels.dtype)
        own, new = self.rows.shape[1:], pixels.shape
        if self.type == _PICTURES and new[0] > own[0]:  # the first image with colour
            self._reallocate((new[0], *own[1:]), np.uint8, 1)
        elif new != own and not (self.type == _PICTURES and new[1:] == own[1:]):
            shapes = f"{list(new)} after {list(own)}"
            raise invalid("images", shapes, "of one shape, or converted by size=64", context=context)
        if pixels.dtype != np.uint8 and self.rows.dtype == np.uint8:  # the first floats that are not divided bytes
            self._reallocate(own, np.float32, np.float32(255.0))
        self.rows[self.added] = pixels if pixels.dtype == self.rows.dtype else pixels / np.float32(255.0)
        self.added += 1

    def _reallocate(self, shape: tuple[int, ...], dtype: Any, divisor: Any) -> None:
        rows = np.empty((self.count, *shape), dtype)
        for index in range(self.added):
            rows[index] = self.rows[index] if divisor == 1 else self.rows[index] / divisor
        self.rows = rows

    def _notes(self) -> list[str]:
        if self.type != _PICTURES:
            values = "" if self.type == "float" else values_note(self.type, self.white, self.high)
            return [values, channels_note(self.channels, self.options.background, self.options.alpha)]
        notes = conversion_notes(self.options.preprocessing, self.traits, self.high)
        if self.rows.shape[1] == 1 and self.options.channels == "auto" and "RGB" in self.modes:
            notes.append(STORED_IN_COLOUR)
        return notes
