"""A code of two latents as a map: where images lie, coloured by a factor, and what is decoded from every place.

Shape letters: N observations, K factors, S places along one side.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from markupsafe import Markup
from matplotlib import colormaps
from matplotlib.colors import to_hex
from torch import Tensor

from unweave.evaluation.evaluate import Evaluation, encode_dataset
from unweave.model import TrainedModel
from unweave.report.images import adjusted_information, image_grid
from unweave.report.panels.swaps import class_name
from unweave.report.words import pretty, short

POINTS = 2000
SIDE = 11  # images along one side of the map
FIELD, LEFT, BOTTOM, EDGE = 370, 40, 22, 6  # of the drawing: the square, beside and below it, inside its edge
KINDS = 10  # classes with a colour each; more are shades from low to high
ENDS = (1.0, 99.0)  # percentiles between which the map lies, along the longer of its axes


class LatentMap(NamedTuple):
    """The two sides of the map."""

    factor: str  # what the colours mean; "" if no factor is known
    svg: Markup
    legend: list[tuple[str, str]]  # colour and class
    pixels: np.ndarray


def latent_map(trained: TrainedModel, result: Evaluation, seed: int) -> LatentMap | None:
    """The map of a two-dimensional code that can be decoded; None of any other."""
    what = trained.representation
    if what.latents != 2 or what.decode is None:
        return None
    table = encode_dataset(what, trained.data, num_samples=POINTS, seed=seed)
    low, high = _ends(table.codes)
    best = _telling(result)
    classes = np.zeros(len(table.codes), dtype=np.int64) if best is None else _classes(trained, table.indices, best)
    names = [] if best is None else [class_name(trained.data, best, v) for v in range(trained.data.factor_sizes[best])]
    colours = _colours(len(names))
    legend = list(zip(colours, names, strict=True))
    if len(legend) > KINDS:  # shades are read by their ends
        legend = [legend[i] for i in np.linspace(0, len(legend) - 1, 5).round().astype(int)]
    svg = _scatter(table.codes, low, high, classes, colours or ["var(--run0)"])
    title = "" if best is None else pretty(trained.data.factor_names[best])
    return LatentMap(title, svg, legend, _map(trained, low, high))


def _ends(codes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The corners of the square that the map shows: as wide as it is high, so that no direction is stretched."""
    low, high = np.percentile(codes, ENDS, axis=0)
    middle, half = (low + high) / 2, max((high - low).max() / 2, 1e-6)
    return middle - half, middle + half


def _telling(result: Evaluation) -> int | None:
    """The factor the code knows most of."""
    return int(adjusted_information(result).max(0).argmax()) if len(result.factor_names) else None


def _classes(trained: TrainedModel, indices: Tensor, k: int) -> np.ndarray:
    device = next((b.device for b in trained.data.buffers()), indices.device)
    return trained.data.factors(indices.to(device))[:, k].cpu().numpy()


def _colours(count: int) -> list[str]:
    """A colour for each class: told apart up to KINDS, from there on shades in order."""
    if count <= KINDS:
        return [f"var(--kind{v})" for v in range(count)]
    return [to_hex(colormaps["viridis"](v / (count - 1))) for v in range(count)]


def _map(trained: TrainedModel, low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """Decoded images over the plane, the second latent upwards."""
    across, up = (np.linspace(low[i], high[i], SIDE) for i in (0, 1))
    places = np.stack(np.meshgrid(across, up[::-1]), axis=-1)  # [S, S, 2]
    images = trained.decode(places.reshape(-1, 2))
    return image_grid([list(row) for row in images.reshape(SIDE, SIDE, *images.shape[1:])])


def _scatter(codes: np.ndarray, low: np.ndarray, high: np.ndarray, classes: np.ndarray, colours: list[str]) -> Markup:
    """Dots over the same part of the plane as the map; what lies outside it is left out."""
    inside = ((codes >= low) & (codes <= high)).all(1)
    share = (codes - low) / (high - low)
    x = LEFT + EDGE + share[:, 0] * (FIELD - 2 * EDGE)
    y = FIELD - EDGE - share[:, 1] * (FIELD - 2 * EDGE)
    body = Markup(f'<rect class="field" x="{LEFT}" y="0" width="{FIELD}" height="{FIELD}"/>')
    for v in sorted({-1, *range(len(colours))}):
        here = np.flatnonzero(inside & (classes == v))
        if len(here):
            dots = "".join(f"M{x[i]:.0f} {y[i]:.0f}h0" for i in here)
            colour = "var(--faint)" if v < 0 else colours[v]
            body += Markup('<path class="dots" style="stroke:{}" d="{}"/>').format(colour, dots)
    return Markup('<svg viewBox="0 0 {} {}" role="img" aria-label="codes in the plane">{}</svg>').format(
        LEFT + FIELD, FIELD + BOTTOM, body + _words(low, high)
    )


def _words(low: np.ndarray, high: np.ndarray) -> Markup:
    ends = [short(float(round(v, 2))) for v in (*low, *high)]
    beside, right, foot = LEFT - 6, LEFT + FIELD, FIELD + 16
    told = [
        (LEFT, foot, "start", ends[0]), (LEFT + FIELD / 2, foot, "middle", "z0"), (right, foot, "end", ends[2]),
        (beside, FIELD, "end", ends[1]), (beside, FIELD / 2, "end", "z1"), (beside, 11, "end", ends[3]),
    ]  # fmt: skip
    words = [f'<text class="tick" x="{x}" y="{y}" text-anchor="{a}">{text}</text>' for x, y, a, text in told]
    return Markup("".join(words))
