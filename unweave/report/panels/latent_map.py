"""Codes of two latents as a map: where images lie, coloured by a factor, and the decoded images of a grid.

Shape letters: N observations, K factors, S grid points along one side.
"""

from typing import Any

import numpy as np
from markupsafe import Markup
from matplotlib import colormaps
from matplotlib.colors import to_hex

from unweave.data.dataset import data_device
from unweave.evaluation.evaluate import encode_dataset
from unweave.model import TrainedModel
from unweave.report.formatting import pretty, short
from unweave.report.images import image_grid, inline_image
from unweave.report.information import adjusted_information
from unweave.report.panel import Panel
from unweave.report.swaps import class_name
from unweave.report.views import RunView

POINTS = 2000
SIDE = 11  # images along one side of the map
WIDTH = 392  # CSS pixels of the map
FIELD, LEFT, BOTTOM, EDGE = 370, 40, 22, 6  # of the scatter plot: its square, the space beside, below and inside it
MAX_COLOURS = 10  # more classes are shades from low to high
PERCENTILES = (1.0, 99.0)  # range of the longer axis


def context(run: RunView) -> dict[str, Any]:
    trained, result = run.trained, run.result
    data, table = trained.data, encode_dataset(trained.representation, trained.data, num_samples=POINTS, seed=run.seed)
    low, high = corners(table.codes)
    best = int(adjusted_information(result).max(0).argmax()) if result.factor_names else None
    classes, names, colours = np.zeros(len(table.codes), dtype=np.int64), [], ["var(--run0)"]
    if best is not None:
        classes = data.factors(table.indices.to(data_device(data)))[:, best].cpu().numpy()
        names = [class_name(data, best, v) for v in range(data.factor_sizes[best])]
        few, last = len(names) <= MAX_COLOURS, len(names) - 1
        colours = [f"var(--kind{v})" if few else to_hex(colormaps["viridis"](v / last)) for v in range(len(names))]
    legend = list(zip(colours, names, strict=False))
    if len(legend) > MAX_COLOURS:
        legend = [legend[i] for i in np.linspace(0, len(legend) - 1, 5).round().astype(int)]
    return {
        "factor": "" if best is None else pretty(data.factor_names[best]),
        "svg": _scatter(table.codes, low, high, classes, colours),
        "legend": legend,
        "map": inline_image(decoded_map(trained, low, high), WIDTH),
    }


def corners(codes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return two corners of the square that the map shows."""
    low, high = np.percentile(codes, PERCENTILES, axis=0)
    middle, half = (low + high) / 2, max((high - low).max() / 2, 1e-6)
    return middle - half, middle + half


def decoded_map(trained: TrainedModel, low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """Return the pixels of images decoded from a grid, the second latent upwards."""
    across, up = (np.linspace(low[i], high[i], SIDE) for i in (0, 1))
    codes = np.stack(np.meshgrid(across, up[::-1]), axis=-1)  # [S, S, 2]
    images = trained.decode(codes.reshape(-1, 2))
    return image_grid([list(row) for row in images.reshape(SIDE, SIDE, *images.shape[1:])])


def _scatter(codes: np.ndarray, low: np.ndarray, high: np.ndarray, classes: np.ndarray, colours: list[str]) -> Markup:
    """Return a scatter plot of the codes inside the square."""
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
    return Markup('<svg viewBox="0 0 {} {}" role="img" aria-label="scatter plot of the codes">{}</svg>').format(
        LEFT + FIELD, FIELD + BOTTOM, body + _axis_labels(low, high)
    )


def _axis_labels(low: np.ndarray, high: np.ndarray) -> Markup:
    ends = [short(float(round(v, 2))) for v in (*low, *high)]
    beside, right, below = LEFT - 6, LEFT + FIELD, FIELD + 16
    labels = [
        (LEFT, below, "start", ends[0]), (LEFT + FIELD / 2, below, "middle", "z0"), (right, below, "end", ends[2]),
        (beside, FIELD, "end", ends[1]), (beside, FIELD / 2, "end", "z1"), (beside, 11, "end", ends[3]),
    ]  # fmt: skip
    texts = [f'<text class="tick" x="{x}" y="{y}" text-anchor="{a}">{label}</text>' for x, y, a, label in labels]
    return Markup("".join(texts))


PANEL = Panel("latent_map", "Map of the code", "run", context, needs=("two latents", "decoder"))
