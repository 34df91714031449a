"""Overview of a data set: a contact sheet of its images and histograms of its factors."""

import math
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from PIL import Image, ImageDraw, ImageFont

from unweave.data import Dataset
from unweave.data.user.factor_table import repr_value
from unweave.data.user.inspection import factor_values_of
from unweave.data.user.wording import printable
from unweave.report.images import ACCENT, INK, LINE, SOFT, figure_png, load_font, to_png
from unweave.runs import write_files

_ACROSS, _DOWN = 8, 6
_CELL = 104  # pixels on the sheet, about
_HEAD = 52
_MAX_BARS = 12  # names of bars of a discrete factor
_MAX_SINGLE_BARS = 200  # numbers with a bar for each of them; more are drawn like a continuous factor
_BINS = 30
_MAX_CHARTS = 60
_MAX_VALUES = 12  # factors whose values are below an image; there is no space for more


def save_sheets(data: Dataset, out: Path, title: str) -> list[Path]:
    """Write pictures.png and, if factors are known, factors.png into a folder; return their paths."""
    contents = {out / "pictures.png": contact_sheet(data, title, data.source_info.file_names)}
    if data.factor_names:
        contents[out / "factors.png"] = factor_charts(data)
    write_files(out, contents)
    return list(contents)


def contact_sheet(data: Dataset, title: str, names: Sequence[str] = ()) -> bytes:
    """Return evenly spaced images of the data with their names and factors, as PNG."""
    index = np.unique(np.linspace(0, data.size - 1, _ACROSS * _DOWN).round().astype(np.int64))
    cells = [_cell(image) for image in data.images(torch.from_numpy(index)).numpy()]
    width, height = cells[0].size
    head, note = load_font(17, bold=True), load_font(10)
    lines = (1 if names else 0) + (1 if data.factor_names else 0)
    pad, gap, step = 20, 10, height + 14 * lines + 10
    down = -(-len(cells) // _ACROSS)
    size = (2 * pad + min(_ACROSS, len(cells)) * (width + gap) - gap, 2 * pad + _HEAD + down * step)
    sheet = Image.new("RGB", size, "white")
    draw = ImageDraw.Draw(sheet)
    draw.text((pad, pad), _cut(printable(title), head, size[0] - 2 * pad), font=head, fill=INK)
    colour = {1: "grey", 3: "colour"}.get(data.shape[0], f"{data.shape[0]} channels")
    form = f"{data.shape[1]} x {data.shape[2]}, {colour}"
    subtitle = f"{len(cells)} of {data.size:,} images as the model sees them: {form}"
    draw.text((pad, pad + 24), subtitle, font=load_font(12), fill=SOFT)
    for number, (cell, observation) in enumerate(zip(cells, index)):
        x, y = pad + number % _ACROSS * (width + gap), pad + _HEAD + number // _ACROSS * step
        sheet.paste(cell, (x, y))
        draw.rectangle((x - 1, y - 1, x + width, y + height), outline=LINE)
        name = printable(names[observation].rsplit("/", 1)[-1]) if names else ""
        values = ", ".join(_value(data, int(observation), k) for k in range(min(_MAX_VALUES, len(data.factor_names))))
        for row, text in enumerate(filter(None, (name, values))):
            draw.text((x, y + height + 3 + 14 * row), _cut(text, note, width), font=note, fill=SOFT)
    return to_png(sheet)


def _cell(image_CHW: np.ndarray) -> Image.Image:
    """Return the image, enlarged by an integer factor or reduced if it is large."""
    pixels = np.round(np.clip(image_CHW, 0.0, 1.0) * 255.0).astype(np.uint8).transpose(1, 2, 0)
    pixels = pixels[..., :3] if pixels.shape[2] >= 3 else np.repeat(pixels[..., :1], 3, axis=2)
    image = Image.fromarray(pixels)
    longest = max(image.size)
    zoom = max(1, round(_CELL / longest)) if longest <= 1.5 * _CELL else _CELL / longest
    filter = Image.Resampling.NEAREST if zoom >= 1 else Image.Resampling.BOX
    return image.resize((max(1, round(image.width * zoom)), max(1, round(image.height * zoom))), filter)


def _value(data: Dataset, observation: int, k: int) -> str:
    at = torch.tensor([observation])
    if data.factor_types[k] == "continuous":
        value = float(data.values(at)[0, k])
        return "?" if math.isnan(value) else f"{value:.2g}"
    known = int(data.factors(at)[0, k])
    return "?" if known < 0 else printable(repr_value(data.factor_values[k][known]).strip("'"))


def _cut(text: str, font: ImageFont.FreeTypeFont, width: int) -> str:
    """Return the text, shortened to this width."""
    kept = text
    while kept and font.getlength(kept + "…" * (kept != text)) > width:
        kept = kept[:-1]
    return kept + "…" * (kept != text)


def _plain(text: str) -> str:
    """Return a text that matplotlib shows as it is: $ would begin a formula."""
    return printable(text).replace("$", r"\$")


def factor_charts(data: Dataset) -> bytes:
    """Return a histogram of each factor, as PNG."""
    across = min(3, count := min(_MAX_CHARTS, len(data.factor_names)))
    down = -(-count // across)
    figure = Figure(figsize=(3.6 * across, 2.5 * down), dpi=120, layout="constrained")
    figure.get_layout_engine().set(w_pad=0.12, h_pad=0.12)  # type: ignore[union-attr, call-arg]
    for k in range(count):
        _chart(figure.add_subplot(down, across, k + 1), data, k)
    if count < len(data.factor_names):
        figure.suptitle(f"the first {count} of {len(data.factor_names):,} factors", fontsize=10, color=SOFT)
    return figure_png(figure)


def _chart(axes: Axes, data: Dataset, k: int) -> None:
    numbers = factor_values_of(data, k)
    present = numbers[~np.isnan(numbers)]
    values = data.factor_values[k]
    if data.factor_types[k] == "continuous":
        axes.hist(present, bins=_BINS, color=ACCENT)
    elif len(values) > _MAX_SINGLE_BARS and not isinstance(values[0], str):
        axes.hist(np.array(values, dtype=np.float64)[present.astype(np.int64)], bins=_BINS, color=ACCENT)
    else:
        _bars(axes, data, k, present.astype(np.int64))
    missing = len(numbers) - len(present)
    axes.set_title(_plain(data.factor_names[k]), loc="left", fontsize=10, fontweight="bold", color=INK)
    if missing:
        axes.set_title(f"{missing:,} missing", loc="right", fontsize=8, color=SOFT)
    axes.spines[["top", "right"]].set_visible(False)
    axes.spines[["left", "bottom"]].set_color(LINE)
    axes.tick_params(labelsize=8, colors=SOFT, length=0)
    axes.locator_params(axis="y", nbins=4)


def _bars(axes: Axes, data: Dataset, k: int, classes: np.ndarray) -> None:
    """Draw one bar per value; of many values without an order only the most frequent."""
    counts = np.bincount(classes, minlength=data.factor_sizes[k])
    order = np.arange(len(counts))
    if len(counts) > _MAX_BARS and isinstance(data.factor_values[k][0], str):
        order = np.argsort(-counts, kind="stable")[:_MAX_BARS]
    axes.bar(range(len(order)), counts[order], color=ACCENT, width=0.8)
    values = [repr_value(data.factor_values[k][c]).strip("'") for c in order]
    names = [_plain(value if len(value) <= 14 else value[:13] + "…") for value in values]
    every = max(1, -(-len(names) // _MAX_BARS))
    long = max(map(len, names)) * len(names[::every]) > 36
    axes.set_xticks(
        range(0, len(order), every), names[::every], rotation=45 if long else 0, ha="right" if long else "center"
    )
    if len(order) < len(counts):
        axes.set_xlabel(f"and {len(counts) - len(order):,} more", fontsize=8, color=SOFT)
