"""Convert arrays of images of any layout and dtype to bytes, or floats in 0..1.

Shape letters: N observations, C channels, H height, W width.
"""

import numpy as np
from PIL import Image

from unweave.data.user.image_io import Preprocessing, preprocess_image
from unweave.errors import UserError, check_choice, invalid

LAYOUTS = ("NCHW", "NHWC", "NHW")
UNCHANGED = Preprocessing(0)
_VALUES = "bytes, or floats in 0..1"


def to_pixels(
    images: np.ndarray, context: str, layout: str | None = None, preprocessing: Preprocessing = UNCHANGED
) -> tuple[np.ndarray, tuple[str, ...]]:
    """Return images as [N, C, H, W] in bytes or floats in 0..1, and notes on what was converted."""
    if layout is not None:
        check_choice("layout", layout, LAYOUTS)
    shape = list(images.shape)
    if images.ndim not in (3, 4) or not images.size:
        raise invalid("images", shape, "of shape [N, C, H, W], [N, H, W, C] or [N, H, W]", context=context)
    pixels, notes = _to_unit_range(channels_first(images, context, layout), context)
    if len(pixels) < 2:
        raise invalid("images", shape, "at least two images", context=context)
    unchanged = not preprocessing.size and preprocessing.channels == "auto" and pixels.shape[1] != 4
    return (pixels if unchanged else _preprocess(pixels, preprocessing, context)), notes


def channels_first(images: np.ndarray, context: str, layout: str | None) -> np.ndarray:
    """Return images [N, C, H, W]; the layout is needed only if the shape is ambiguous."""
    if images.ndim == 3:
        return images[:, None]
    first, last = images.shape[1] in (1, 3, 4), images.shape[3] in (1, 3, 4)
    if layout is None and first and last:
        message = f"{context}: images of shape {list(images.shape)} may be NCHW or NHWC; pass layout="
        raise UserError(message, argument="layout", accepted=LAYOUTS)
    return images.transpose(0, 3, 1, 2) if (last if layout is None else layout == "NHWC") else images


def _to_unit_range(images: np.ndarray, context: str) -> tuple[np.ndarray, tuple[str, ...]]:
    """Return bytes, or float32 in 0..1."""
    kind = images.dtype.kind
    if kind == "b":
        return images.astype(np.uint8) * np.uint8(255), ("True is white",)
    if kind in "ui":
        return _integers_to_bytes(images, context)
    if kind != "f":
        raise invalid("images", str(images.dtype), _VALUES, context=context)
    pixels = images.astype(np.float32)
    if not np.isfinite(pixels).all():
        raise invalid("images", "nan or infinity", "finite", context=context)
    low, high = float(pixels.min()), float(pixels.max())
    if low < 0.0 or high > 1.0:
        raise invalid("images", f"floats from {low:g} to {high:g}", _VALUES, context=context)
    levels = np.round(pixels * 255.0)
    divided_bytes = bool((levels / np.float32(255.0) == pixels).all())  # bytes need a quarter of the memory
    return (levels.astype(np.uint8), ()) if divided_bytes else (pixels, ())


def _integers_to_bytes(images: np.ndarray, context: str) -> tuple[np.ndarray, tuple[str, ...]]:
    sample = images[:: max(1, len(images) // 1000)]
    if sample.max() <= 1 and images.max() <= 1 and images.min() >= 0:
        return images.astype(np.uint8) * np.uint8(255), ("pixels are 0 and 1: 1 is white",)
    if images.dtype == np.uint8:
        return images, ()
    low, high = int(images.min()), int(images.max())
    if low < 0 or high > 65535:
        raise invalid("images", f"integers from {low} to {high}", "0..255, or floats in 0..1", context=context)
    if high <= 255:
        return images.astype(np.uint8), ()
    return (images / 257.0).round().astype(np.uint8), ("16 bits are reduced to 8: 65535 is white",)


def _preprocess(pixels: np.ndarray, preprocessing: Preprocessing, context: str) -> np.ndarray:
    """Apply to every image the preprocessing of image files."""
    if pixels.shape[1] not in (1, 3, 4):
        raise invalid("images", f"{pixels.shape[1]} channels", "1, 3 or 4 channels if size is given", context=context)
    levels = pixels if pixels.dtype == np.uint8 else (pixels * 255.0).round().astype(np.uint8)
    if preprocessing.channels == "auto":
        preprocessing = preprocessing._replace(channels="gray" if pixels.shape[1] == 1 else "rgb")
    levels_NHWC = np.ascontiguousarray(levels.transpose(0, 2, 3, 1))
    rows = levels_NHWC[..., 0] if pixels.shape[1] == 1 else levels_NHWC
    return np.stack([preprocess_image(Image.fromarray(row), preprocessing) for row in rows])
