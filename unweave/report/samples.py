"""PNG files of traversals and reconstructions, for run folders and documents."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from PIL import Image, ImageDraw

from unweave.evaluation.evaluate import Evaluation, evaluate
from unweave.model import TrainedModel
from unweave.report.formatting import format_number, percent, pretty
from unweave.report.images import INK, SOFT, load_font, reconstructions, strip, to_png
from unweave.report.information import adjusted_information, coordinate_names, latent_order
from unweave.report.traversals import traverse
from unweave.runs import write_files


class _Row(NamedTuple):
    head: str
    note: str
    strips: list[np.ndarray]
    faint: bool = False


def _sheet(rows: Sequence[_Row], width: int = 900) -> bytes:
    """Return labelled rows of strips on white, as PNG."""
    zoom = max(1, round(width / rows[0].strips[0].shape[1]))
    head_font, note_font, pad, row_gap = load_font(17, bold=True), load_font(13), 20, 14
    images = [[Image.fromarray(pixels).convert("RGBA") for pixels in row.strips] for row in rows]
    strips = [[i.resize((i.width * zoom, i.height * zoom), Image.Resampling.NEAREST) for i in row] for row in images]
    text_width = max(max(head_font.getlength(row.head), note_font.getlength(row.note)) for row in rows)
    left, gap = pad + 18 + int(text_width), 2 * zoom
    heights = [max(sum(image.height + gap for image in column) - gap, 40) for column in strips]
    size = (left + strips[0][0].width + pad, 2 * pad + sum(height + row_gap for height in heights) - row_gap)
    sheet, top = Image.new("RGB", size, "white"), pad
    draw = ImageDraw.Draw(sheet)
    for row, column, height in zip(rows, strips, heights, strict=True):
        middle, y = top + height // 2, top
        draw.text((pad, middle - 11), row.head, font=head_font, fill="#b5b2ab" if row.faint else INK, anchor="lm")
        draw.text((pad, middle + 11), row.note, font=note_font, fill="#b5b2ab" if row.faint else SOFT, anchor="lm")
        for image in column:
            sheet.paste(image, (left, y), image)
            y += image.height + gap
        top += height + row_gap
    return to_png(sheet)


def _latent_label(result: Evaluation, latent: int) -> tuple[str, str]:
    """Return the heading of a latent and the note below: "z3 · posX 72 %", "2.31 nats"."""
    known_K, nats = adjusted_information(result)[latent], float(result.latent_information[latent])
    best = int(known_K.argmax()) if len(known_K) else 0
    note = f"{format_number(nats)} nats" if np.isfinite(nats) else ""
    if not result.active[latent]:
        return f"z{latent} · inactive", note
    if not len(known_K) or known_K[best] < 0.02:
        return f"z{latent}", note
    return f"z{latent} · {pretty(result.factor_names[best])} {percent(float(known_K[best]))}", note


def traversal_png(
    trained: TrainedModel,
    *,
    result: Evaluation | None = None,
    starts: int = 1,
    steps: int = 9,
    seed: int = 0,
    include_inactive: bool = False,
) -> bytes:
    """Return a PNG with one labelled row per active latent, or per latent, most informative first."""
    if result is None:
        result = evaluate(trained, metrics=(), seed=seed, save=False)
    order = [z for z in latent_order(result) if not coordinate_names(trained)[z][1]]
    chosen = [z for z in order if include_inactive or result.active[z]] or order
    found = traverse(trained, chosen, starts=starts, steps=steps, seed=seed)
    rows = [(z, [strip(images) for images in strips]) for z, _, _, strips in found]
    return _sheet([_Row(*_latent_label(result, z), strips, not result.active[z]) for z, strips in rows])


def save_samples(trained: TrainedModel, seed: int = 0) -> None:
    """Write samples/reconstructions.png and samples/traversals.png into the run folder, if the method can do both."""
    if trained.representation.encode is None or trained.representation.decode is None:
        return
    rows = [_Row(name, "", [pixels]) for name, pixels in reconstructions(trained, seed=seed)]
    folder = trained.folder.path / "samples"
    contents = {"reconstructions.png": _sheet(rows), "traversals.png": traversal_png(trained, seed=seed)}
    write_files(folder, {folder / name: content for name, content in contents.items()}, argument="samples")
