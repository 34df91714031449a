"""Latent traversals: decoded images while one latent moves through its range.

Shape letters: C channels, H height, W width, Z latents, S steps of a traversal.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from unweave.evaluation.evaluate import Evaluation, encode_dataset
from unweave.model import TrainedModel
from unweave.report.formatting import pretty
from unweave.report.images import inline_image, sample_images, strip
from unweave.report.information import adjusted_information, coordinate_names, latent_order

RANGE_ROWS = 2000  # number of encoded images from which the range of a latent is estimated
PERCENTILES = (2.5, 97.5)
MAX_LATENTS = 12  # active latents shown at once; the others are collapsed


def traverse(
    trained: TrainedModel, latents: Sequence[int], *, starts: int = 3, steps: int = 9, seed: int = 0
) -> list[tuple[int, float, float, list[np.ndarray]]]:
    """Return for each latent the ends of its range and a strip [S, C, H, W] per start image, the same for all latents.

    The other latents keep the values of the start images.
    """
    table = encode_dataset(trained.representation, trained.data, num_samples=RANGE_ROWS, seed=seed)
    ranges_2Z = np.percentile(table.codes, PERCENTILES, axis=0)
    codes = trained.encode(sample_images(trained, starts, seed))
    traversals = []
    for z in latents:
        low, high = (float(v) for v in ranges_2Z[:, z])
        moved = np.repeat(codes[:, None], steps, axis=1)
        moved[:, :, z] = np.linspace(low, high, steps)
        images = trained.decode(moved.reshape(-1, codes.shape[1]))
        traversals.append((z, low, high, list(images.reshape(len(codes), steps, *images.shape[1:]))))
    return traversals


def latent_rows(trained: TrainedModel, result: Evaluation, seed: int, starts: int) -> list[dict[str, Any]]:
    """Return a row for each latent, most informative first; collapsed ones have a single start image.

    Probabilities of classes are left out, since they cannot be moved one at a time.
    """
    if trained.representation.decode is None:
        return []
    known_ZK, most = adjusted_information(result), float(np.nanmax([*result.latent_information, 1e-9]))
    named, rows = coordinate_names(trained), []
    movable = [z for z in latent_order(result) if not named[z][1]]
    shown = [z for z in movable if result.active[z]][:MAX_LATENTS]
    for z, low, high, strips in traverse(trained, movable, starts=starts, seed=seed):
        k = int(known_ZK[z].argmax()) if result.factor_names else None
        rows.append(
            {
                "name": f"z{z}",
                "part": named[z][0],
                "active": bool(result.active[z]),
                "nats": float(result.latent_information[z]),
                "weight": float(np.nan_to_num(result.latent_information[z] / most)),
                "factor": "" if k is None else pretty(result.factor_names[k]),
                "share": 0.0 if k is None else float(known_ZK[z, k]),
                "low": low,
                "high": high,
                "strips": [inline_image(strip(images)) for images in (strips if z in shown else strips[:1])],
            }
        )
    return rows
