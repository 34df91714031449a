"""What a page shows of a code of several parts, of a model that knows classes, and of a code of two latents.

All of it follows from what the representation says of itself and from the run's supervision, never from the
method's name.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from unweave.errors import UserError
from unweave.evaluation.evaluate import Evaluation
from unweave.evaluation.groups import MOST_CLASSES, GroupAccuracy, group_accuracy, shared_factors
from unweave.model import TrainedModel
from unweave.report.images import picture
from unweave.report.panels import classes as of_classes
from unweave.report.panels.clusters import match_clusters
from unweave.report.panels.latent_map import latent_map
from unweave.report.panels.parts import PartInformation, dead_parts, part_findings, part_information, score_sentence
from unweave.report.panels.swaps import CodeSplit, interpolations, is_grouped, split_code, swap_grid
from unweave.report.words import join_words, pretty

MEMBERS, ACCURACY_ROWS = (1, 2, 4), 1500
PLANE_WIDTH = 392
WIDEST = 640  # of grids, in CSS pixels
MATRIX = 12  # classes up to which confusions are shown as a table


def parts_panel(trained: TrainedModel, result: Evaluation, seed: int, side: int) -> dict[str, Any] | None:
    """Content and style: what each knows, swaps, ways between groups, and how well groups are told."""
    parts = trained.representation.parts
    halves = split_code(parts)
    if halves is None or any(part.classes for part in parts):
        return None
    known = part_information(trained, result)
    shown = trained.representation.decode is not None
    return {
        "title": join_words([pretty(part.name) for part in parts]).capitalize(),
        "names": [pretty(part.name) for part in parts],
        "findings": part_findings(known, dead_parts(trained, result, seed)),
        "score": score_sentence(result, known),
        "rows": _knowledge_rows(known),
        "swap": swap_panel(trained, halves, seed, side) if shown else None,
        "interpolations": [(way.changes, picture(way.pixels)) for way in interpolations(trained, halves, seed=seed)]
        if shown
        else [],
        "between": "group" if is_grouped(trained) else "image",
        "together": is_grouped(trained) and trained.representation.encode_group is not None,
        "first": halves.first,
        "second": halves.second,
        "accuracy": _accuracy_panel(trained, seed),
    }


def swap_panel(trained: TrainedModel, halves: CodeSplit, seed: int, side: int) -> dict[str, Any]:
    pixels = swap_grid(trained, halves, down=side, across=side + 2, seed=seed)
    return {"picture": picture(pixels, WIDEST), "first": halves.first, "second": halves.second}


def _knowledge_rows(known: PartInformation) -> list[dict[str, Any]]:
    """A line a factor: where it should be and what each part knows of it."""
    return [
        {
            "factor": pretty(name),
            "owner": known.expected_part_K[k],
            "shares": [float(share) for share in known.share_PK[:, k]],
        }
        for k, name in enumerate(known.names)
    ]


def _accuracy_panel(trained: TrainedModel, seed: int) -> dict[str, Any] | None:
    """How often the groups' class is told, if the supervision says what groups are and they are not too many."""
    by = shared_factors(trained.config.supervision, trained.data)
    if not by or np.prod([trained.data.factor_sizes[k] for k in by]) > MOST_CLASSES:
        return None
    try:
        found = group_accuracy(trained, members=MEMBERS, num_samples=ACCURACY_ROWS, seed=seed)
    except UserError:  # every class has a single observation, or there is one class only: nothing to tell
        return None
    first, *others = [pretty(part.name) for part in trained.representation.parts]
    return {
        "by": join_words([pretty(trained.data.factor_names[k]) for k in by]),
        "lines": _accuracy_lines(found, first, join_words(others)),
        "chance": found.chance,
        "classes": found.classes,
        "rows": found.rows,
        "first": first,
        "second": join_words(others),
    }


def _accuracy_lines(found: GroupAccuracy, first: str, second: str) -> list[tuple[str, float, int]]:
    """What the class is told from, how often it is right, and which part that is."""
    lines = [
        (f"{first} of one image" if count == 1 else f"{first} of {count} images together", share, 0)
        for count, share in sorted(found.content.items())
    ]
    return [*lines, (f"{second} of one image", found.style, 1)]


# --- classes -------------------------------------------------------------------------------------------------------


def classes_panel(trained: TrainedModel, seed: int, side: int) -> dict[str, Any] | None:
    """How well classes are told or clusters match them, and images by class, where the method has any."""
    parts = of_classes.class_parts(trained)
    told, clusters = of_classes.class_accuracies(trained, seed), match_clusters(trained, seed)
    if not parts and not told and not clusters:
        return None
    shown = trained.representation.decode is not None
    halves = split_code(trained.representation.parts)
    return {
        "class_accuracies": [_class_accuracy_panel(one) for one in told],
        "cluster_match": clusters,
        "grids": [_grids(trained, part, seed, side) for part in parts] if shown else [],
        "swap": swap_panel(trained, halves, seed, side) if shown and halves else None,
    }


def _class_accuracy_panel(told: of_classes.ClassAccuracy) -> dict[str, Any]:
    small = len(told.names) <= MATRIX
    return {
        "title": told.title,
        "names": told.names,
        "accuracy": told.accuracy,
        "chance": told.chance,
        "rows": told.rows,
        "held_out": told.held_out,
        "labelled": told.labelled,
        "confusion": told.confusion_VV.tolist() if small else [],
        "mistakes": of_classes.confusions(told),
        "leak": told.leak,
    }


def _grids(trained: TrainedModel, part: of_classes.ClassPart, seed: int, side: int) -> dict[str, Any]:
    strips = of_classes.samples(trained, part, seed=seed)
    return {
        "title": part.title,
        "count": len(part.names),
        "learned": trained.representation.from_prior is not None,
        "samples": [(name, picture(pixels)) for name, pixels in strips],
        "names": part.names[: of_classes.MOST_COLUMNS],
        "analogies": picture(of_classes.analogies(trained, part, down=side, seed=seed), WIDEST),
    }


# --- two latents ---------------------------------------------------------------------------------------------------


def latent_map_panel(trained: TrainedModel, result: Evaluation, seed: int) -> dict[str, Any] | None:
    found = latent_map(trained, result, seed)
    if found is None:
        return None
    shown = picture(found.pixels, PLANE_WIDTH)
    return {"factor": found.factor, "svg": found.svg, "legend": found.legend, "picture": shown}
