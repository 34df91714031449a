"""Images of a code of several parts: swaps of parts between images, and interpolations of one part.

Shape letters: B images, G members of a group, Z latents.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from unweave.contract import Part
from unweave.data import Dataset, Sampler
from unweave.data.dataset import data_device
from unweave.data.supervision.label_mapping import value_name
from unweave.model import TrainedModel
from unweave.report.formatting import join_words, pretty
from unweave.report.images import image_grid, inline_image, sample_images

DRAWN_GROUPS = 64  # groups among which different ones are chosen
MAX_CHANGES = 3  # factors named beside an interpolation
GRID_WIDTH = 640  # CSS pixels


class CodeSplit(NamedTuple):
    """The code divided in two for swaps."""

    first: str  # the name of one side, such as content
    second: str
    is_first_Z: np.ndarray  # whether a coordinate belongs to the first side, bool


def split_code(parts: Sequence[Part]) -> CodeSplit | None:
    """Split into classes and the rest, or without classes into the first part and the others; None if impossible.

    Parts that follow from others belong to the classes.
    """
    classes = any(part.classes for part in parts)
    chosen = [(part, part.classes or part.follows if classes else p == 0) for p, part in enumerate(parts)]
    names = {side: [pretty(part.name) for part, is_first in chosen if is_first == side] for side in (True, False)}
    if not names[True] or not names[False]:
        return None
    is_first_Z = np.array([is_first for part, is_first in chosen for _ in range(part.size)])
    return CodeSplit(join_words(names[True]), join_words(names[False]), is_first_Z)


def swap_context(trained: TrainedModel, split: CodeSplit, seed: int, side: int) -> dict[str, Any]:
    pixels = swap_grid(trained, split, down=side, across=side + 2, seed=seed)
    return {"image": inline_image(pixels, GRID_WIDTH), "first": split.first, "second": split.second}


def swap_grid(trained: TrainedModel, split: CodeSplit, *, down: int = 6, across: int = 8, seed: int = 0) -> np.ndarray:
    """Return the pixels of a grid: the first side of the code from the image on the left, the second from above."""
    images = sample_images(trained, down + across, seed)
    down = min(down, len(images) // 2)
    rows, columns = images[:down], images[down:]
    codes = trained.encode(images)
    mixed = np.where(split.is_first_Z, codes[:down, None], codes[None, down:])
    changed = recode(trained, trained.representation.follow, mixed.reshape(-1, codes.shape[1]))
    decoded = trained.decode(changed).reshape(*mixed.shape[:2], *images.shape[1:])
    head: list[np.ndarray | None] = [None, *columns]
    body = [[row, *line] for row, line in zip(rows, decoded, strict=True)]
    return image_grid([head, *body], column_gaps=[0], row_gaps=[0])


def recode(trained: TrainedModel, change: Callable[[Tensor], Tensor] | None, code_BZ: np.ndarray) -> np.ndarray:
    """Apply a function of the representation to codes; None leaves them unchanged."""
    if change is None:
        return code_BZ
    with torch.no_grad():
        device = next(trained.method.parameters()).device
        return change(torch.as_tensor(code_BZ, dtype=torch.float32, device=device)).cpu().numpy()


def interpolations(
    trained: TrainedModel, split: CodeSplit, *, count: int = 4, steps: int = 7, seed: int = 0
) -> list[tuple[list[str], np.ndarray]]:
    """Interpolate between the contents of pairs of groups with the style of the first group's first member.

    Returns for each pair the factors that change, and the pixels of a member of the first group, the steps, and a
    member of the second group.
    """
    index_BG = _random_groups(trained, 2 * count, seed)
    codes_BZ = _group_codes(trained, index_BG)
    share = np.linspace(0.0, 1.0, steps)[:, None]
    found = []
    for start, end in zip(range(0, len(index_BG) - 1, 2), range(1, len(index_BG), 2), strict=True):
        moved = (1 - share) * codes_BZ[start] + share * codes_BZ[end]
        between = trained.decode(np.where(split.is_first_Z, moved, codes_BZ[start]))
        ends = trained.data.images(index_BG[[start, end], 0]).cpu().numpy()
        pixels = image_grid([[ends[0], *between, ends[1]]], column_gaps=[0, steps])
        found.append((_changes(trained, index_BG[start, 0], index_BG[end, 0]), pixels))
    return found


def is_grouped(trained: TrainedModel) -> bool:
    """Return True if the run was trained with groups."""
    return "groups" in trained.method.needs


def _random_groups(trained: TrainedModel, count: int, seed: int) -> Tensor:
    """Return members of different groups of the run's supervision [B, G]; single observations without groups."""
    data, device = trained.data, data_device(trained.data)
    if not is_grouped(trained):
        index = torch.randperm(data.size, generator=torch.Generator().manual_seed(seed))[:count]
        return index[:, None].to(device)
    sampler = Sampler(data, ("groups", "group_id"), trained.supervision)
    drawn = sampler.plan(torch.tensor(seed, device=device), DRAWN_GROUPS)
    first = {int(group): row for row, group in reversed(list(enumerate(drawn["group_id"])))}
    rows = sorted(first.values())[:count]
    return drawn["groups"][rows[: len(rows) // 2 * 2]]


def _group_codes(trained: TrainedModel, index_BG: Tensor) -> np.ndarray:
    """Return the code of each group's first member, with the content of all members if the method combines them."""
    if not len(index_BG):
        return np.zeros((0, trained.representation.latents))
    images = trained.data.images(index_BG.flatten()).unflatten(0, index_BG.shape)
    if trained.representation.encode_group is None:
        return trained.encode(images[:, 0])
    return trained.encode_group(images)[:, 0]


def _changes(trained: TrainedModel, one: Tensor, other: Tensor) -> list[str]:
    """Return the factors in which the groups of two observations differ: "shape cube → sphere"."""
    data = trained.data
    before, after = data.factors(torch.stack([one, other])).tolist()
    return [
        f"{pretty(data.factor_names[k])} {class_name(data, k, before[k])} → {class_name(data, k, after[k])}"
        for k in trained.supervision.shared
        if before[k] != after[k]
    ][:MAX_CHANGES]


def class_name(data: Dataset, k: int, number: int) -> str:
    return "unknown" if number < 0 else value_name(data, k, number)
