"""Pictures of a data set: a contact sheet of images as a model sees them, and how its factors are spread."""

from __future__ import annotations

import io
import math
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from PIL import Image, ImageDraw, ImageFont

from unweave.data import Dataset
from unweave.data.user.factor_table import repr_value
from unweave.data.user.inspection import factor_values_of
from unweave.data.user.wording import printable
from unweave.errors import UserError
from unweave.report.images import _font, to_png
from unweave.runs import write_atomic

_ACROSS, _DOWN = 8, 6
_CELL = 104  # pixels on the sheet, about
_HEAD = 52
_INK, _SOFT, _FAINT, _ACCENT = "#1f1e1b", "#6d6a63", "#e7e3db", "#1f5f6b"
_BARS = 12  # values of a discrete factor that get a bar of their own


def save_sheets(data: Dataset, out: Path, title: str) -> list[Path]:
    """Write pictures.png and, where factors are known, factors.png into a folder; returns what was written."""
    content = {"pictures.png": contact_sheet(data, title, data.source_info.file_names)}
    if data.factor_names:
        content["factors.png"] = factor_charts(data)
    try:
        out.mkdir(parents=True, exist_ok=True)
        for name, png in content.items():
            write_atomic(out / name, png)
    except OSError as error:
        raise UserError(f"out '{out}' cannot be written: {error.strerror or error}; choose another folder") from error
    return [out / name for name in content]


# --- contact sheet -------------------------------------------------------------------------------------------------


def contact_sheet(data: Dataset, title: str, names: Sequence[str] = ()) -> bytes:
    """Images all over the set in its order, with their names and factors, as PNG."""
    index = np.unique(np.linspace(0, data.size - 1, _ACROSS * _DOWN).round().astype(np.int64))
    cells = [_cell(image) for image in data.images(torch.from_numpy(index)).numpy()]
    width, height = cells[0].size
    head, note = _font(17, bold=True), _font(10)
    lines = (1 if names else 0) + (1 if data.factor_names else 0)
    pad, gap, step = 20, 10, height + 14 * lines + 10
    down = -(-len(cells) // _ACROSS)
    across = min(_ACROSS, len(cells))
    size = (2 * pad + across * (width + gap) - gap, 2 * pad + _HEAD + down * step)
    sheet = Image.new("RGB", size, "white")
    draw = ImageDraw.Draw(sheet)
    draw.text((pad, pad), _cut(title, head, size[0] - 2 * pad), font=head, fill=_INK)
    draw.text((pad, pad + 24), _subtitle(data, len(cells)), font=_font(12), fill=_SOFT)
    for place, (cell, number) in enumerate(zip(cells, index)):
        x, y = pad + place % _ACROSS * (width + gap), pad + _HEAD + place // _ACROSS * step
        sheet.paste(cell, (x, y))
        draw.rectangle((x - 1, y - 1, x + width, y + height), outline=_FAINT)
        for row, text in enumerate(_captions(data, int(number), names)):
            draw.text((x, y + height + 3 + 14 * row), _cut(text, note, width), font=note, fill=_SOFT)
    return to_png(sheet)


def _subtitle(data: Dataset, shown: int) -> str:
    channels, height, width = data.shape
    colour = {1: "grey", 3: "colour"}.get(channels, f"{channels} channels")
    return f"{shown} of {data.size:,} images as the model sees them: {height} x {width}, {colour}"


def _cell(image_CHW: np.ndarray) -> Image.Image:
    """One image, enlarged by whole pixels, or shrunk if it is large."""
    pixels = np.round(np.clip(image_CHW, 0.0, 1.0) * 255.0).astype(np.uint8).transpose(1, 2, 0)
    pixels = pixels[..., :3] if pixels.shape[2] >= 3 else np.repeat(pixels[..., :1], 3, axis=2)
    picture = Image.fromarray(pixels)
    longest = max(picture.size)
    zoom = max(1, round(_CELL / longest)) if longest <= 1.5 * _CELL else _CELL / longest
    filter = Image.Resampling.NEAREST if zoom >= 1 else Image.Resampling.BOX
    return picture.resize((round(picture.width * zoom), round(picture.height * zoom)), filter)


def _captions(data: Dataset, number: int, names: Sequence[str]) -> list[str]:
    said = [printable(names[number].rsplit("/", 1)[-1])] if names else []
    if data.factor_names:
        said.append(", ".join(_value(data, number, k) for k in range(len(data.factor_names))))
    return said


def _value(data: Dataset, number: int, k: int) -> str:
    at = torch.tensor([number])
    if data.factor_types[k] == "continuous":
        value = float(data.values(at)[0, k])
        return "?" if math.isnan(value) else f"{value:.2g}"
    known = int(data.factors(at)[0, k])
    return "?" if known < 0 else repr_value(data.factor_values[k][known]).strip("'")


def _cut(text: str, font: ImageFont.FreeTypeFont, width: int) -> str:
    """The text, or as much of it as fits."""
    if font.getlength(text) <= width:
        return text
    while text and font.getlength(text + "…") > width:
        text = text[:-1]
    return text + "…"


# --- factors -------------------------------------------------------------------------------------------------------


def factor_charts(data: Dataset) -> bytes:
    """How often each value of each factor occurs, as PNG."""
    count = len(data.factor_names)
    across = min(3, count)
    down = -(-count // across)
    figure = Figure(figsize=(3.6 * across, 2.5 * down), dpi=120, layout="constrained")
    figure.get_layout_engine().set(w_pad=0.12, h_pad=0.12)  # type: ignore[union-attr, call-arg]
    FigureCanvasAgg(figure)
    for k in range(count):
        axes = figure.add_subplot(down, across, k + 1)
        _chart(axes, data, k)
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png")
    return buffer.getvalue()


def _chart(axes: Axes, data: Dataset, k: int) -> None:
    numbers = factor_values_of(data, k)
    present = numbers[~np.isnan(numbers)]
    if data.factor_types[k] == "continuous":
        axes.hist(present, bins=30, color=_ACCENT)
    else:
        _bars(axes, data, k, present.astype(np.int64))
    missing = len(numbers) - len(present)
    axes.set_title(data.factor_names[k], loc="left", fontsize=10, fontweight="bold", color=_INK)
    if missing:
        axes.set_title(f"{missing:,} missing", loc="right", fontsize=8, color=_SOFT)
    axes.spines[["top", "right"]].set_visible(False)
    axes.spines[["left", "bottom"]].set_color(_FAINT)
    axes.tick_params(labelsize=8, colors=_SOFT, length=0)
    axes.locator_params(axis="y", nbins=4)


def _bars(axes: Axes, data: Dataset, k: int, classes: np.ndarray) -> None:
    """One bar a value; where they are many and have no order of numbers, the most frequent."""
    counts = np.bincount(classes, minlength=data.factor_sizes[k])
    order = np.arange(len(counts))
    if len(counts) > _BARS and isinstance(data.factor_values[k][0], str):
        order = np.argsort(-counts, kind="stable")[:_BARS]
    axes.bar(range(len(order)), counts[order], color=_ACCENT, width=0.8)
    names = [_short(repr_value(data.factor_values[k][c]).strip("'")) for c in order]
    every = max(1, -(-len(names) // _BARS))
    long = max(map(len, names)) * len(names[::every]) > 36
    axes.set_xticks(
        range(0, len(order), every), names[::every], rotation=45 if long else 0, ha="right" if long else "center"
    )
    if len(order) < len(counts):
        axes.set_xlabel(f"and {len(counts) - len(order):,} more", fontsize=8, color=_SOFT)


def _short(name: str) -> str:
    return name if len(name) <= 14 else name[:13] + "…"
