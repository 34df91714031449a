"""Pictures of a trained model as arrays and PNG: traversals of its latents, reconstructions.

Shape letters: B images, C channels, H height, W width, Z latents, K factors, S steps of a traversal.
"""

from __future__ import annotations

import base64
import io
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from matplotlib import get_data_path
from PIL import Image, ImageDraw, ImageFont

from unweave.errors import UserError
from unweave.evaluation.evaluate import Evaluation, encode_dataset, evaluate
from unweave.model import TrainedModel
from unweave.report.words import format_number, percent, pretty
from unweave.runs import write_atomic

RANGE_ROWS = 2000  # encoded images from which a latent's range is read
PERCENTILES = (2.5, 97.5)
STRIP_WIDTH = 600  # about as wide as strips are shown on a desk screen, in CSS pixels
SMALLEST = 32  # pictures under this side are enlarged, so that the gaps between them stay thin


class Traversal(NamedTuple):
    """One latent, moved through its range while the others stay where the start images put them."""

    latent: int
    low: float
    high: float
    strips: list[np.ndarray]  # per start image [S, C, H, W]


def adjusted_information(result: Evaluation) -> np.ndarray:
    """How much of each factor's entropy each latent knows, 0..1 [Z, K]; a constant factor has nothing to know.

    Adjusted for chance (Vinh et al. 2010): what counting finds in codes that know nothing, a lot if few are labelled,
    counts as 0, and all of the entropy still as 1. What a latent may reach by luck is 0 as well.
    """
    if result.chance is None or result.luck is None:
        return normalized_information(result)
    more_ZK = result.information - result.chance
    return np.where(more_ZK > result.luck, _share(more_ZK, result.entropies - result.chance), 0.0)


def normalized_information(result: Evaluation) -> np.ndarray:
    """The same as it is counted, which scores such as MIG are made of."""
    return _share(result.information, np.broadcast_to(result.entropies, result.information.shape))


def _share(known_ZK: np.ndarray, whole_ZK: np.ndarray) -> np.ndarray:
    found = np.divide(known_ZK, whole_ZK, out=np.zeros_like(known_ZK), where=whole_ZK > 1e-9)
    return np.clip(np.nan_to_num(found), 0.0, 1.0)


def latent_order(result: Evaluation) -> list[int]:
    """Latents by the information they carry, most first: in nats, or what they know of factors without posteriors."""
    carried = (
        result.latent_information
        if np.isfinite(result.latent_information).all()
        else adjusted_information(result).max(1)
    )
    return np.argsort(-carried, kind="stable").tolist()


def coordinate_names(trained: TrainedModel) -> list[tuple[str, bool]]:
    """Of each latent the part it is of ("" in an undivided code), and whether it is the probability of a class."""
    parts = trained.representation.parts
    named = [(pretty(part.name), part.classes) for part in parts for _ in range(part.size)]
    return named or [("", False)] * trained.representation.latents


def sample_images(trained: TrainedModel, count: int, seed: int) -> np.ndarray:
    """A few images of the data, drawn by the seed [B, C, H, W]."""
    index = torch.randperm(trained.data.size, generator=torch.Generator().manual_seed(seed))[:count]
    device = next((b.device for b in trained.data.buffers()), torch.device("cpu"))
    with torch.no_grad():
        return trained.data.images(index.to(device)).cpu().numpy()


def latent_ranges(trained: TrainedModel, seed: int) -> np.ndarray:
    """Where codes really lie: low and high percentile of every latent [2, Z]."""
    table = encode_dataset(trained.representation, trained.data, num_samples=RANGE_ROWS, seed=seed)
    return np.percentile(table.codes, PERCENTILES, axis=0)


def traverse(
    trained: TrainedModel, latents: Sequence[int], *, starts: int = 3, steps: int = 9, seed: int = 0
) -> list[Traversal]:
    """The named latents' traversals, all from the same start images."""
    ranges_2Z = latent_ranges(trained, seed)
    codes = trained.encode(sample_images(trained, starts, seed))
    found = []
    for z in latents:
        low, high = (float(v) for v in ranges_2Z[:, z])
        moved = np.repeat(codes[:, None], steps, axis=1)
        moved[:, :, z] = np.linspace(low, high, steps)
        images = trained.decode(moved.reshape(-1, codes.shape[1]))
        found.append(Traversal(z, low, high, list(images.reshape(len(codes), steps, *images.shape[1:]))))
    return found


# --- from arrays to PNG --------------------------------------------------------------------------------------------


def to_pixels(image_CHW: np.ndarray) -> np.ndarray:
    """[H, W, 1 or 3] uint8; what lies outside 0..1 is clipped, what is no number is black."""
    kept = image_CHW[:3] if len(image_CHW) >= 3 else image_CHW[:1]
    levels = 255 if len(kept) == 1 else 63  # no eye tells more apart in colour, and the file is a third smaller
    scaled = np.round(np.clip(np.nan_to_num(kept, posinf=1.0), 0.0, 1.0) * levels) * (255.0 / levels)
    pixels = np.round(scaled).astype(np.uint8).transpose(1, 2, 0)
    enlarge = max(1, -(-SMALLEST // pixels.shape[0]))
    return pixels.repeat(enlarge, 0).repeat(enlarge, 1)


def strip(images: np.ndarray) -> np.ndarray:
    """Images side by side with see-through gaps [H, W', 2 or 4] uint8."""
    return image_grid([list(images)])


def image_grid(
    rows: Sequence[Sequence[np.ndarray | None]], *, column_gaps: Sequence[int] = (), row_gaps: Sequence[int] = ()
) -> np.ndarray:
    """Images in rows with see-through gaps, wider ones after these columns and rows; None is see-through as well."""
    first = to_pixels(next(image for row in rows for image in row if image is not None))
    height, width, channels = first.shape
    gap = max(1, width // 32)
    left, right = _places(len(rows[0]), width, gap, column_gaps)
    top, bottom = _places(len(rows), height, gap, row_gaps)
    sheet = np.zeros((bottom, right, channels + 1), np.uint8)
    for y, row in zip(top, rows, strict=True):
        for x, image in zip(left, row, strict=True):
            if image is not None:
                sheet[y : y + height, x : x + width, :channels] = to_pixels(image)
                sheet[y : y + height, x : x + width, channels] = 255
    return sheet


def _places(count: int, side: int, gap: int, wide: Sequence[int]) -> tuple[list[int], int]:
    """Where each of `count` cells begins, and where the last one ends."""
    starts = [i * (side + gap) + 5 * gap * sum(after < i for after in wide) for i in range(count)]
    return starts, starts[-1] + side


def to_png(pixels: np.ndarray | Image.Image) -> bytes:
    image = pixels if isinstance(pixels, Image.Image) else Image.fromarray(pixels)
    buffer = io.BytesIO()
    image.save(buffer, "PNG", optimize=True)
    return buffer.getvalue()


class Picture(NamedTuple):
    """An inline image: its address, and the width at which its pixels stay whole."""

    uri: str
    width: int


def picture(pixels: np.ndarray, width: int = STRIP_WIDTH) -> Picture:
    """The pixels to be shown about so wide."""
    zoom = max(1, round(width / pixels.shape[1]))
    return Picture("data:image/png;base64," + base64.b64encode(to_png(pixels)).decode(), zoom * pixels.shape[1])


# --- whole pictures, for documents ---------------------------------------------------------------------------------


def _font(size: int, bold: bool = False) -> ImageFont.FreeTypeFont:
    name = "DejaVuSans-Bold.ttf" if bold else "DejaVuSans.ttf"
    return ImageFont.truetype(str(Path(get_data_path()) / "fonts" / "ttf" / name), size)


def _enlarged(row: np.ndarray, zoom: int) -> Image.Image:
    image = Image.fromarray(row)
    return image.convert("RGBA").resize((image.width * zoom, image.height * zoom), Image.Resampling.NEAREST)


class _Row(NamedTuple):
    head: str
    note: str
    pixels: list[np.ndarray]
    faint: bool = False


def _sheet(rows: Sequence[_Row], width: int = 900) -> bytes:
    """Labelled rows of pictures on white, as PNG."""
    zoom = max(1, round(width / rows[0].pixels[0].shape[1]))
    strips = [[_enlarged(p, zoom) for p in row.pixels] for row in rows]
    heads, notes, pad = _font(17, bold=True), _font(13), 20
    left = pad + 18 + int(max(max(heads.getlength(r.head), notes.getlength(r.note)) for r in rows))
    gap, between = 2 * zoom, 14
    tall = [sum(s.height + gap for s in strip_row) - gap for strip_row in strips]
    size = (left + strips[0][0].width + pad, 2 * pad + sum(max(t, 40) + between for t in tall) - between)
    sheet, y = Image.new("RGB", size, "white"), pad
    draw = ImageDraw.Draw(sheet)
    for row, strip_row, height in zip(rows, strips, tall, strict=True):
        middle = y + max(height, 40) // 2
        draw.text((pad, middle - 11), row.head, font=heads, fill="#b5b2ab" if row.faint else "#1f1e1b", anchor="lm")
        draw.text((pad, middle + 11), row.note, font=notes, fill="#b5b2ab" if row.faint else "#6d6a63", anchor="lm")
        row_gaps = y
        for picture in strip_row:
            sheet.paste(picture, (left, row_gaps), picture)
            row_gaps += picture.height + gap
        y += max(height, 40) + between
    return to_png(sheet)


def latent_label(result: Evaluation, latent: int) -> tuple[str, str]:
    """A latent's heading and the note under it: "z3 · posX 72 %", "2.31 nats"."""
    known_K = adjusted_information(result)[latent]
    k = int(known_K.argmax()) if len(known_K) else 0
    note = (
        f"{format_number(float(result.latent_information[latent]))} nats"
        if np.isfinite(result.latent_information[latent])
        else ""
    )
    if not result.active[latent]:
        return f"z{latent} · unused", note
    if not len(known_K) or known_K[k] < 0.02:
        return f"z{latent}", note
    return f"z{latent} · {pretty(result.factor_names[k])} {percent(float(known_K[k]))}", note


def traversal_picture(
    trained: TrainedModel,
    *,
    result: Evaluation | None = None,
    starts: int = 1,
    steps: int = 9,
    seed: int = 0,
    dead: bool = False,
) -> bytes:
    """A PNG with one labelled row per latent in use (`dead=True`: of all), most informative first."""
    if result is None:
        result = evaluate(trained, metrics=(), seed=seed, save=False)
    order = [z for z in latent_order(result) if not coordinate_names(trained)[z][1]]
    chosen = [z for z in order if dead or result.active[z]] or order
    rows = []
    for moved in traverse(trained, chosen, starts=starts, steps=steps, seed=seed):
        faint = not result.active[moved.latent]
        rows.append(_Row(*latent_label(result, moved.latent), [strip(images) for images in moved.strips], faint))
    return _sheet(rows)


def reconstruction_rows(trained: TrainedModel, *, count: int = 9, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Originals and what the model makes of them, each [B, C, H, W]."""
    originals = sample_images(trained, count, seed)
    return originals, trained.decode(trained.encode(originals))


def save_samples(trained: TrainedModel, seed: int = 0) -> None:
    """Write samples/reconstructions.png and samples/traversals.png into the run folder."""
    if trained.representation.decode is None:
        return
    originals, rebuilt = reconstruction_rows(trained, seed=seed)
    rows = [_Row("original", "", [strip(originals)]), _Row("reconstruction", "", [strip(rebuilt)])]
    pictures = {"reconstructions.png": _sheet(rows), "traversals.png": traversal_picture(trained, seed=seed)}
    folder = trained.folder.path / "samples"
    try:
        folder.mkdir(exist_ok=True)
        for name, content in pictures.items():
            write_atomic(folder / name, content)
    except OSError as error:
        raise UserError(f"samples cannot be written to '{folder}': {error.strerror or error}") from error
