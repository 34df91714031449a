"""Information of each part of a code about each factor, swaps and interpolations of the first part.

Shape letters: Z latents, P parts, K factors.
"""

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from unweave.contract import Part
from unweave.data import Dataset
from unweave.data.supervision.kind import Supervision, varying_factors
from unweave.errors import UserError
from unweave.evaluation.evaluate import ACTIVE_THRESHOLD, Evaluation, encode_dataset
from unweave.evaluation.groups import MAX_CLASSES, group_accuracy
from unweave.model import TrainedModel
from unweave.report.formatting import join_words, percent, pretty
from unweave.report.images import inline_image
from unweave.report.information import PARTIAL_THRESHOLD, adjusted_information
from unweave.report.panel import Panel
from unweave.report.swaps import interpolations, is_grouped, split_code, swap_context
from unweave.report.traversals import RANGE_ROWS
from unweave.report.views import RunView

MIN_INFORMATION = 0.05  # share of a factor's entropy below which a part has no information about it
MIN_VARIANCE = 0.01  # variance of a latent's means below which it is inactive (Burda et al. 2016)
MEMBERS, ACCURACY_ROWS = (1, 2, 4), 1500  # of the classification of groups


class PartInformation(NamedTuple):
    """Information of the parts about the factors."""

    parts: tuple[Part, ...]
    names: tuple[str, ...]  # of the factors
    share_PK: np.ndarray  # `adjusted_information` of the best latent of each part about each factor
    expected_part_K: tuple[int, ...]  # the part in which the supervision places the factor; -1 if none

    def expected(self, p: int) -> list[int]:
        """Return the factors that are expected in this part."""
        return [k for k, part in enumerate(self.expected_part_K) if part == p]

    def name(self, p: int) -> str:
        return pretty(self.parts[p].name)

    def factors(self, factors: Sequence[int], last: str = "and") -> str:
        return join_words([pretty(self.names[k]) for k in factors], last)

    def shares(self, factors: Sequence[int], p: int) -> str:
        return join_words([f"{pretty(self.names[k])} ({percent(float(self.share_PK[p, k]))})" for k in factors])


def context(run: RunView) -> dict[str, Any]:
    trained, result, split = run.trained, run.result, split_code(run.trained.representation.parts)
    assert split is not None  # since the panel needs parts
    known = part_information(trained, result)
    names, can_decode = [pretty(part.name) for part in known.parts], trained.representation.decode is not None
    steps = interpolations(trained, split, seed=run.seed) if can_decode else []
    return {
        "title": join_words(names).capitalize(),
        "names": names,
        "findings": part_findings(known, inactive_parts(trained, result, run.seed)),
        "known": known,
        "swap": swap_context(trained, split, run.seed, run.side) if can_decode else None,
        "interpolations": [(changes, inline_image(pixels)) for changes, pixels in steps],
        "between": "group" if is_grouped(trained) else "image",
        "combined": is_grouped(trained) and trained.representation.encode_group is not None,
        "split": split,
        "accuracy": _group_accuracy(trained, run.seed),
    }


def _group_accuracy(trained: TrainedModel, seed: int) -> dict[str, Any] | None:
    """Return how well the group can be predicted; None without groups by factors, or with too many of them."""
    by = trained.supervision.shared
    if not by or math.prod(trained.data.factor_sizes[k] for k in by) > MAX_CLASSES:
        return None
    try:
        found = group_accuracy(trained, members=MEMBERS, num_samples=ACCURACY_ROWS, seed=seed)
    except UserError:  # a single group, or no group with several observations
        return None
    return {"by": join_words([pretty(trained.data.factor_names[k]) for k in by]), **found._asdict()}


def part_information(trained: TrainedModel, result: Evaluation) -> PartInformation:
    """Return the information of the best latent of each part about each factor."""
    parts = trained.representation.parts
    ends = np.cumsum([part.size for part in parts])
    known_ZK = adjusted_information(result)
    share_PK = np.stack([known_ZK[end - part.size : end].max(0) for part, end in zip(parts, ends, strict=True)])
    none = (-1,) * len(result.factor_names)
    expected = expected_parts(trained.supervision, trained.data) if len(parts) == 2 else none
    return PartInformation(parts, result.factor_names, share_PK, expected)


def expected_parts(supervision: Supervision, data: Dataset) -> tuple[int, ...]:
    """Return for each factor 0 if groups share it, 1 if it varies within groups, -1 if the supervision says neither."""
    first = supervision.shared
    if not first:
        return (-1,) * len(data.factor_names)
    second = varying_factors(data) if supervision.style is None else supervision.style
    return tuple(0 if k in first else 1 if k in second else -1 for k in range(len(data.factor_names)))


def inactive_parts(trained: TrainedModel, result: Evaluation, seed: int) -> dict[int, str]:
    """Return the parts of which all latents are inactive, each with the reason."""
    parts, found, start = trained.representation.parts, {}, 0
    for p, part in enumerate(parts):
        here = slice(start, start + part.size)
        start += part.size
        if not part.classes and not result.active[here].any():
            found[p] = f"its latents carry less than {ACTIVE_THRESHOLD} nats about an image"
        elif not part.classes and np.isnan(result.latent_information[here]).all():
            codes = encode_dataset(trained.representation, trained.data, num_samples=RANGE_ROWS, seed=seed).codes
            if (codes[:, here].var(0) < MIN_VARIANCE).all():
                found[p] = f"its latents do not differ between images (variance below {MIN_VARIANCE})"
    return found


def part_findings(known: PartInformation, inactive: dict[int, str]) -> list[str]:
    """Return sentences about the factors that each part encodes, starting with parts that have collapsed.

    `inactive` are parts with the reason, as from `inactive_parts`.
    """
    collapses, holds, leaks = [], [], []
    for p in range(len(known.parts)):
        name, other, expected = known.name(p), 1 - p, known.expected(p)
        lost = [k for k in expected if known.share_PK[p, k] < MIN_INFORMATION]
        nothing = f"it has no information about {known.factors(lost, 'or')}"
        collapse = inactive.get(p, nothing if expected and lost == expected else "")
        if collapse:
            collapses.append(f"The {name} has collapsed: {collapse}.")
        elif lost and len(lost) == len(expected) - 1:
            left = known.factors([k for k in expected if k not in lost])
            collapses.append(f"The {name} has collapsed to {left}: {nothing}.")
        held = [k for k in expected if known.share_PK[p, k] >= PARTIAL_THRESHOLD]
        if held and not collapse:
            holds.append(f"The {name} encodes {known.shares(held, p)}.")
        leaked = [k for k in expected if len(known.parts) == 2 and known.share_PK[other, k] >= PARTIAL_THRESHOLD]
        if leaked and other not in inactive:
            also = "" if collapse else "also "
            leaks.append(f"Leakage: the {known.name(other)} {also}encodes {known.shares(leaked, other)}.")
    best_K = known.share_PK.max(0)
    weak = [k for k, part in enumerate(known.expected_part_K) if part >= 0 and best_K[k] < PARTIAL_THRESHOLD]
    unknown = [f"No part has much information about {known.factors(weak, 'or')}."] if weak else []
    return collapses + holds + leaks + unknown


PANEL = Panel("parts", "Parts of the code", "run", context, needs=("parts",))
