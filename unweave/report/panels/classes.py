"""Accuracy of classes and clusters, and images by class.

Shape letters: B images, V classes, Z latents.
"""

from typing import Any

import numpy as np

from unweave.model import TrainedModel
from unweave.report.class_accuracy import ClassPart, class_parts, match_clusters
from unweave.report.images import image_grid, inline_image, sample_images
from unweave.report.panel import Panel
from unweave.report.swaps import GRID_WIDTH, recode, split_code, swap_context
from unweave.report.views import RunView

MAX_ROWS, MAX_COLUMNS = 16, 20  # classes that are shown
MAX_CONFUSION = 12  # classes up to which the confusion matrix is shown


def context(run: RunView) -> dict[str, Any] | None:
    trained, parts, clusters = run.trained, class_parts(run.trained), match_clusters(run.trained, run.seed)
    if not parts and not run.accuracies and not clusters:
        return None
    can_decode, split = trained.representation.decode is not None, split_code(trained.representation.parts)
    return {
        "accuracies": run.accuracies,
        "max_confusion": MAX_CONFUSION,
        "clusters": clusters,
        "grids": [_grids(trained, part, run.seed, run.side) for part in parts] if can_decode else [],
        "swap": swap_context(trained, split, run.seed, run.side) if can_decode and split else None,
    }


def _grids(trained: TrainedModel, part: ClassPart, seed: int, side: int) -> dict[str, Any]:
    return {
        "title": part.title,
        "count": len(part.names),
        "learned_prior": trained.representation.from_prior is not None,
        "samples": [(name, inline_image(pixels)) for name, pixels in samples(trained, part, seed=seed)],
        "names": part.names[:MAX_COLUMNS],
        "analogies": inline_image(analogies(trained, part, down=side, seed=seed), GRID_WIDTH),
    }


def one_hot(code_BZ: np.ndarray, part: ClassPart, class_B: np.ndarray) -> np.ndarray:
    """Return the codes with this part set to these classes."""
    changed = code_BZ.copy()
    changed[:, part.start : part.start + len(part.names)] = np.eye(len(part.names))[class_B]
    return changed


def random_codes(trained: TrainedModel, count: int, seed: int) -> np.ndarray:
    """Return codes [B, Z] with standard normal style and a random class in each class part."""
    random = np.random.default_rng(seed)
    codes = random.standard_normal((count, trained.representation.latents))
    for part in class_parts(trained):
        codes = one_hot(codes, part, random.integers(len(part.names), size=count))
    return codes


def samples(trained: TrainedModel, part: ClassPart, *, across: int = 9, seed: int = 0) -> list[tuple[str, np.ndarray]]:
    """Return a strip of images for each class; a column has the same style in all of them.

    With a learned prior that depends on the class, a column is the same standard normal draw, transformed to the
    prior of the row's class.
    """
    codes, prior = random_codes(trained, across, seed), trained.representation.from_prior
    strips = []
    for v, name in enumerate(part.names[:MAX_ROWS]):
        row = recode(trained, prior, one_hot(codes, part, np.full(across, v)))
        strips.append((name, image_grid([list(trained.decode(row))])))
    return strips


def analogies(trained: TrainedModel, part: ClassPart, *, down: int = 6, seed: int = 0) -> np.ndarray:
    """Return the pixels of a grid: in each row an image of the data, then its style with every class."""
    images = sample_images(trained, down, seed)
    codes, follow = trained.encode(images), trained.representation.follow
    changed = [one_hot(codes, part, np.full(len(images), v)) for v in range(len(part.names[:MAX_COLUMNS]))]
    columns = [trained.decode(recode(trained, follow, code_BZ)) for code_BZ in changed]
    return image_grid([list(row) for row in zip(images, *columns, strict=True)])


PANEL = Panel("classes", "Classes", "run", context, needs=("classes",))
