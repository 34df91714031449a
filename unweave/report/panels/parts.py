"""What each part of a code knows of each factor, and whether a part has collapsed, in numbers and in sentences.

Shape letters: Z latents, P parts, K factors.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from unweave.contract import Part
from unweave.data import Dataset
from unweave.data.supervision.parse import read_supervision
from unweave.data.supervision.specs import Match
from unweave.evaluation.evaluate import ACTIVE_THRESHOLD, Evaluation, encode_dataset
from unweave.evaluation.groups import shared_factors
from unweave.model import TrainedModel
from unweave.report.images import RANGE_ROWS, adjusted_information, normalized_information
from unweave.report.words import PARTIAL_THRESHOLD, format_number, join_words, percent, pretty

NOTHING = 0.05  # share of a factor's entropy under which a part knows nothing of it
STILL = 0.01  # variance of a latent's means under which it carries nothing (Burda et al. 2016)


class PartInformation(NamedTuple):
    """What the parts know."""

    parts: tuple[Part, ...]
    names: tuple[str, ...]  # of the factors
    share_PK: np.ndarray  # of each factor's entropy the best latent of each part knows, chance taken off
    counted_PK: np.ndarray  # as it is counted, for the score
    expected_part_K: tuple[int, ...]  # the part that should know the factor, by the supervision; -1 if it does not say


def part_information(trained: TrainedModel, result: Evaluation) -> PartInformation:
    """How much of each factor each part's best latent knows."""
    parts = trained.representation.parts
    ends = np.cumsum([part.size for part in parts])
    share_PK, counted_PK = (
        np.stack([known_ZK[end - part.size : end].max(0) for part, end in zip(parts, ends, strict=True)])
        for known_ZK in (adjusted_information(result), normalized_information(result))
    )
    unowned = (-1,) * len(result.factor_names)
    owners = owners_of(trained.config.supervision, trained.data) if len(parts) == 2 else unowned
    return PartInformation(parts, result.factor_names, share_PK, counted_PK, owners)


def owners_of(supervision: str, data: Dataset) -> tuple[int, ...]:
    """The part each factor belongs to: 0 what groups share, 1 what differs in them, -1 what nothing is said of."""
    first, spec = shared_factors(supervision, data), read_supervision(supervision, data)
    if not first:
        return (-1,) * len(data.factor_names)
    movable = tuple(k for k, size in enumerate(data.factor_sizes) if size > 1)
    second = spec.style if isinstance(spec, Match) else movable
    return tuple(0 if k in first else 1 if k in second else -1 for k in range(len(data.factor_names)))


# --- sentences -----------------------------------------------------------------------------------------------------


def part_findings(known: PartInformation, dead: dict[int, str]) -> list[str]:
    """What ended up in which part; a part that has collapsed is told first. `dead` are parts and why they are."""
    said, collapsed = [], set()
    for p in range(len(known.parts)):
        if why := dead.get(p) or _knows_nothing(known, p):
            said.append(f"The {pretty(known.parts[p].name)} has collapsed: {why}.")
            said += [] if 1 - p in dead else _taken_over(known, p)
            collapsed.add(p)
        else:
            said += _narrowed(known, p)
    return said + _holds(known, collapsed) + _leaks(known, collapsed, set(dead)) + _lost(known)


def dead_parts(trained: TrainedModel, result: Evaluation, seed: int) -> dict[int, str]:
    """The parts none of whose latents carries anything, and how that shows."""
    parts, found, start = trained.representation.parts, {}, 0
    for p, part in enumerate(parts):
        here = slice(start, start + part.size)
        start += part.size
        which = f"none of its {part.size} latents" if part.size > 1 else "its latent"
        if part.classes:
            continue
        if not result.active[here].any():
            carries = "carries" if part.size > 1 else "does not carry"
            found[p] = f"{which} {carries} more than {ACTIVE_THRESHOLD} nats about an image"
        elif np.isnan(result.latent_information[here]).all() and _is_still(trained, here, seed):
            differs = "differs" if part.size > 1 else "does not differ"
            found[p] = f"{which} {differs} between images (variance below {STILL})"
    return found


def _is_still(trained: TrainedModel, here: slice, seed: int) -> bool:
    codes = encode_dataset(trained.representation, trained.data, num_samples=RANGE_ROWS, seed=seed).codes
    return bool((codes[:, here].var(0) < STILL).all())


def _owned(known: PartInformation, p: int) -> list[int]:
    return [k for k, owner in enumerate(known.expected_part_K) if owner == p]


def _told(known: PartInformation, factors: Sequence[int], last: str = "and") -> str:
    return join_words([pretty(known.names[k]) for k in factors], last)


def _with_shares(known: PartInformation, factors: Sequence[int], p: int) -> str:
    return join_words([f"{pretty(known.names[k])} ({percent(float(known.share_PK[p, k]))})" for k in factors])


def _knows_nothing(known: PartInformation, p: int) -> str:
    """Of factors that belong there; where none is known to, silence is no sign."""
    owned = _owned(known, p)
    if owned and all(known.share_PK[p, k] < NOTHING for k in owned):
        return f"it knows nothing of {_told(known, owned, 'or')}"
    return ""


def _taken_over(known: PartInformation, p: int) -> list[str]:
    """Whether the other part holds what a collapsed one should."""
    if len(known.parts) != 2:
        return []
    taken = [k for k in _owned(known, p) if known.share_PK[1 - p, k] >= PARTIAL_THRESHOLD]
    names = join_words([pretty(part.name) for part in known.parts]).capitalize()
    other = pretty(known.parts[1 - p].name)
    return [f"{names} are both in the {other}: it knows {_with_shares(known, taken, 1 - p)}."] if taken else []


def _narrowed(known: PartInformation, p: int) -> list[str]:
    owned = _owned(known, p)
    left = [k for k in owned if known.share_PK[p, k] >= NOTHING]
    if len(owned) < 2 or len(left) != 1:
        return []
    gone = [k for k in owned if k not in left]
    name = pretty(known.parts[p].name)
    return [f"The {name} has collapsed to {_told(known, left)}: it knows nothing of {_told(known, gone, 'or')}."]


def _holds(known: PartInformation, collapsed: set[int]) -> list[str]:
    said = []
    for p, part in enumerate(known.parts):
        held = [k for k in _owned(known, p) if known.share_PK[p, k] >= PARTIAL_THRESHOLD]
        if held and p not in collapsed:
            said.append(f"The {pretty(part.name)} holds {_with_shares(known, held, p)}.")
    return said


def _leaks(known: PartInformation, collapsed: set[int], dead: set[int]) -> list[str]:
    """Factors of a living part that the other one, if it carries anything, knows too."""
    said = []
    for p in range(len(known.parts) if len(known.parts) == 2 else 0):
        leaked = [k for k in _owned(known, p) if known.share_PK[1 - p, k] >= PARTIAL_THRESHOLD]
        if leaked and p not in collapsed and 1 - p not in dead:
            other = pretty(known.parts[1 - p].name)
            said.append(f"What should not be there, the {other} knows {_with_shares(known, leaked, 1 - p)}.")
    return said


def _lost(known: PartInformation) -> list[str]:
    lost = [
        k
        for k, owner in enumerate(known.expected_part_K)
        if owner >= 0 and (known.share_PK[:, k] < PARTIAL_THRESHOLD).all()
    ]
    return [f"No part tells much of {_told(known, lost, 'or')}."] if lost else []


def score_sentence(result: Evaluation, known: PartInformation) -> str:
    """Group-MIG: as it was scored, or else from the same table of information."""
    value = result.scores.get("group_mig", group_gap(known))
    if not np.isfinite(value):
        return ""
    meaning = "1 is every factor in its own part alone, 0 no difference, −1 in the other"
    return f"Group-MIG is {format_number(value)}: {meaning}."


def group_gap(known: PartInformation) -> float:
    """How much more a factor's own part knows of it than the others, mean over the factors; NaN if none has one."""
    gaps = [
        known.counted_PK[p, k] - np.delete(known.counted_PK[:, k], p).max()
        for k, p in enumerate(known.expected_part_K)
        if p >= 0
    ]
    return float(np.mean(gaps)) if gaps else float("nan")
