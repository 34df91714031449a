"""Pictures of a code of several parts: one image's content with another's style, and the way between two groups.

Shape letters: B images, G members of a group, C channels, H height, W width, Z latents.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import torch

from unweave.contract import Part
from unweave.data import Dataset, Sampler
from unweave.data.dataset import data_device
from unweave.data.supervision.label_mapping import value_name
from unweave.data.supervision.parse import read_supervision
from unweave.data.supervision.specs import Groups
from unweave.evaluation.groups import shared_factors
from unweave.model import TrainedModel
from unweave.report.images import image_grid, sample_images
from unweave.report.words import join_words, pretty

DRAWN = 64  # groups from which different ones are taken
NAMED = 3  # factors told beside an interpolation


class CodeSplit(NamedTuple):
    """A code cut in two: what is swapped against what."""

    first: str  # the name of one half, such as content
    second: str
    is_first_Z: np.ndarray  # whether a coordinate is of the first half, booleans


def split_code(parts: Sequence[Part]) -> CodeSplit | None:
    """Classes against all else; where there are none, the first part against the others. None if there is no half.

    What follows from other parts goes with the classes.
    """
    classes = any(part.classes for part in parts)
    chosen = [(part, part.classes or part.follows if classes else p == 0) for p, part in enumerate(parts)]
    names = {side: [pretty(part.name) for part, is_first in chosen if is_first == side] for side in (True, False)}
    if not names[True] or not names[False]:
        return None
    held = [is_first for part, is_first in chosen for _ in range(part.size)]
    return CodeSplit(join_words(names[True]), join_words(names[False]), np.array(held))


def swap_grid(trained: TrainedModel, halves: CodeSplit, *, down: int = 6, across: int = 8, seed: int = 0) -> np.ndarray:
    """Pixels: the first half of the code is that of the image at the left, the second that of the image above."""
    images = sample_images(trained, down + across, seed)
    down = min(down, len(images) // 2)
    rows, columns = images[:down], images[down:]
    codes = trained.encode(images)
    mixed = np.where(halves.is_first_Z, codes[:down, None], codes[None, down:])
    changed = follow(trained, mixed.reshape(-1, codes.shape[1]))
    decoded = trained.decode(changed).reshape(*mixed.shape[:2], *images.shape[1:])
    head: list[np.ndarray | None] = [None, *columns]
    return image_grid(
        [head, *([row, *line] for row, line in zip(rows, decoded, strict=True))], column_gaps=[0], row_gaps=[0]
    )


def follow(trained: TrainedModel, code_BZ: np.ndarray) -> np.ndarray:
    """Changed codes with those parts anew that follow from others, where the method has such parts."""
    return recoded(trained, trained.representation.follow, code_BZ)


def recoded(
    trained: TrainedModel, change: Callable[[torch.Tensor], torch.Tensor] | None, code_BZ: np.ndarray
) -> np.ndarray:
    """Codes as this function of the method changes them; as they are where it has none."""
    if change is None:
        return code_BZ
    with torch.no_grad():
        device = next(trained.method.parameters()).device
        return change(torch.as_tensor(code_BZ, dtype=torch.float32, device=device)).cpu().numpy()


class Interpolation(NamedTuple):
    """From the content of one group to that of another."""

    changes: list[str]  # what changes, a line a factor
    pixels: np.ndarray  # a member of the one, the steps, a member of the other


def interpolations(
    trained: TrainedModel, halves: CodeSplit, *, count: int = 4, steps: int = 7, seed: int = 0
) -> list[Interpolation]:
    """Ways between the contents of pairs of groups; the style is that of the first group's first member throughout."""
    index_BG = _drawn_groups(trained, 2 * count, seed)
    codes_BZ = _group_codes(trained, index_BG)
    share = np.linspace(0.0, 1.0, steps)[:, None]
    found = []
    for start, end in zip(range(0, len(index_BG) - 1, 2), range(1, len(index_BG), 2), strict=True):
        moved = (1 - share) * codes_BZ[start] + share * codes_BZ[end]
        between = trained.decode(np.where(halves.is_first_Z, moved, codes_BZ[start]))
        ends = [_images(trained, index_BG[row, 0]) for row in (start, end)]
        pixels = image_grid([[ends[0], *between, ends[1]]], column_gaps=[0, steps])
        found.append(Interpolation(_differences(trained, index_BG[start, 0], index_BG[end, 0]), pixels))
    return found


def is_grouped(trained: TrainedModel) -> bool:
    """Whether the run was shown groups."""
    return isinstance(read_supervision(trained.config.supervision, trained.data), Groups)


def _drawn_groups(trained: TrainedModel, count: int, seed: int) -> torch.Tensor:
    """Observations of different groups as the run's supervision draws them [B, G]; single ones where it draws none."""
    data, text = trained.data, trained.config.supervision
    device = data_device(data)
    if not is_grouped(trained):
        index = torch.randperm(data.size, generator=torch.Generator().manual_seed(seed))[:count]
        return index[:, None].to(device)
    drawn = Sampler(data, ("groups", "group_id"), text).plan(torch.tensor(seed, device=device), DRAWN)
    first = {int(number): row for row, number in reversed(list(enumerate(drawn["group_id"])))}
    rows = sorted(first.values())[:count]
    return drawn["groups"][rows[: len(rows) // 2 * 2]]


def _group_codes(trained: TrainedModel, index_BG: torch.Tensor) -> np.ndarray:
    """The code of each group's first member, with the content of all members together where the method has that."""
    if not len(index_BG):
        return np.zeros((0, trained.representation.latents))
    images = trained.data.images(index_BG.flatten()).unflatten(0, index_BG.shape)
    together = trained.representation.encode_group
    if together is None:
        return trained.encode(images[:, 0])
    with torch.no_grad():
        return together(images)[:, 0].cpu().numpy()


def _images(trained: TrainedModel, number: torch.Tensor) -> np.ndarray:
    return trained.data.images(number[None])[0].cpu().numpy()


def _differences(trained: TrainedModel, one: torch.Tensor, other: torch.Tensor) -> list[str]:
    """What the groups of two observations differ in: "shape cube → sphere"."""
    data = trained.data
    before, after = data.factors(torch.stack([one, other])).tolist()
    return [
        f"{pretty(data.factor_names[k])} {class_name(data, k, before[k])} → {class_name(data, k, after[k])}"
        for k in shared_factors(trained.config.supervision, data)
        if before[k] != after[k]
    ][:NAMED]


def class_name(data: Dataset, k: int, number: int) -> str:
    """What a class of a factor is called."""
    return "unknown" if number < 0 else value_name(data, k, number)
