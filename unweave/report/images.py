"""Arrays of images as pixels and PNG.

Shape letters: B images, C channels, H height, W width.
"""

import base64
import io
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from matplotlib import get_data_path
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from PIL import Image, ImageFont

from unweave.data.dataset import data_device
from unweave.model import TrainedModel

STRIP_WIDTH = 600  # CSS pixels, about the width of a strip of images on a page
MIN_SIDE = 32  # smaller images are enlarged, so that the gaps between them stay thin
PAPER, INK, SOFT, FAINT, LINE, ACCENT = "#fdfcfa", "#1f1e1b", "#6d6a63", "#a9a59c", "#e7e3db", "#1f5f6b"


def sample_images(trained: TrainedModel, count: int, seed: int) -> np.ndarray:
    """Return random images of the data [B, C, H, W]."""
    index_B = torch.randperm(trained.data.size, generator=torch.Generator().manual_seed(seed))[:count]
    with torch.no_grad():
        return trained.data.images(index_B.to(data_device(trained.data))).cpu().numpy()


def reconstructions(trained: TrainedModel, *, count: int = 9, seed: int = 0) -> list[tuple[str, np.ndarray]]:
    """Return a strip of random images of the data and a strip of their reconstructions, each with its name."""
    originals = sample_images(trained, count, seed)
    return [("original", strip(originals)), ("reconstruction", strip(trained.decode(trained.encode(originals))))]


def to_pixels(image_CHW: np.ndarray) -> np.ndarray:
    """Return [H, W, 1 or 3] uint8; values outside 0..1 are clipped and NaN is black."""
    kept = image_CHW[:3] if len(image_CHW) >= 3 else image_CHW[:1]
    levels = 255 if len(kept) == 1 else 63  # 64 levels per colour look the same and make the file a third smaller
    scaled = np.round(np.clip(np.nan_to_num(kept, posinf=1.0), 0.0, 1.0) * levels) * (255.0 / levels)
    pixels = np.round(scaled).astype(np.uint8).transpose(1, 2, 0)
    enlarge = max(1, -(-MIN_SIDE // pixels.shape[0]))
    return pixels.repeat(enlarge, 0).repeat(enlarge, 1)


def strip(images: np.ndarray) -> np.ndarray:
    """Return images side by side with transparent gaps [H, W', 2 or 4] uint8."""
    return image_grid([list(images)])


def image_grid(
    rows: Sequence[Sequence[np.ndarray | None]], *, column_gaps: Sequence[int] = (), row_gaps: Sequence[int] = ()
) -> np.ndarray:
    """Return a grid of images with transparent gaps, wider after the given columns and rows; None is transparent."""
    first = to_pixels(next(image for row in rows for image in row if image is not None))
    height, width, channels = first.shape
    gap = max(1, width // 32)
    left, right = _cell_starts(len(rows[0]), width, gap, column_gaps)
    top, bottom = _cell_starts(len(rows), height, gap, row_gaps)
    sheet = np.zeros((bottom, right, channels + 1), np.uint8)
    for y, row in zip(top, rows, strict=True):
        for x, image in zip(left, row, strict=True):
            if image is not None:
                sheet[y : y + height, x : x + width, :channels] = to_pixels(image)
                sheet[y : y + height, x : x + width, channels] = 255
    return sheet


def _cell_starts(count: int, side: int, gap: int, wide: Sequence[int]) -> tuple[list[int], int]:
    """Return the start of each cell and the end of the last one, in pixels."""
    starts = [i * (side + gap) + 5 * gap * sum(after < i for after in wide) for i in range(count)]
    return starts, starts[-1] + side


def to_png(pixels: np.ndarray | Image.Image) -> bytes:
    image = pixels if isinstance(pixels, Image.Image) else Image.fromarray(pixels)
    buffer = io.BytesIO()
    image.save(buffer, "PNG", optimize=True)
    return buffer.getvalue()


def figure_png(figure: Figure) -> bytes:
    """Return a matplotlib figure as PNG; equal figures give equal bytes."""
    buffer = io.BytesIO()
    FigureCanvasAgg(figure).print_png(buffer, metadata={"Software": None})
    return buffer.getvalue()


class InlineImage(NamedTuple):
    """An inline image of a page."""

    uri: str
    width: int  # CSS pixels, a multiple of the image's own width


def inline_image(pixels: np.ndarray, width: int = STRIP_WIDTH) -> InlineImage:
    """Return the pixels as an inline image of about this width."""
    zoom = max(1, round(width / pixels.shape[1]))
    return InlineImage("data:image/png;base64," + base64.b64encode(to_png(pixels)).decode(), zoom * pixels.shape[1])


def load_font(size: int, bold: bool = False) -> ImageFont.FreeTypeFont:
    name = "DejaVuSans-Bold.ttf" if bold else "DejaVuSans.ttf"
    return ImageFont.truetype(str(Path(get_data_path()) / "fonts" / "ttf" / name), size)
