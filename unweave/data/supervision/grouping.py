"""Groups of observations that share some factors: the group of an observation, and the members of a group.

In a grid both are arithmetic on indices. For other data they come from a table, sorted by group and computed once.

Shape letters: N observations, B batch, K factors, P groups.
"""

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from unweave.data.dataset import Dataset, all_indices
from unweave.errors import UserError
from unweave.ops.noise import scale_bits

_MAX_KEY = 2**62  # largest number of a combination of classes


class GridGroups:
    """Groups of a grid: one per combination of the shared factors, all of the same size."""

    def __init__(self, sizes: tuple[int, ...], by: tuple[int, ...]) -> None:
        self.groups = math.prod(sizes[k] for k in by)
        self.members = math.prod(sizes) // self.groups
        strides = [math.prod(sizes[k + 1 :]) for k in range(len(sizes))]
        self.axes = []  # of the shared and of the other factors: size, stride of the index, stride of the group or rank
        for chosen in ([k for k in range(len(sizes)) if (k in by) == shared] for shared in (True, False)):
            own = [math.prod(sizes[k] for k in chosen[i + 1 :]) for i in range(len(chosen))]
            self.axes.append([(sizes[k], strides[k], stride) for k, stride in zip(chosen, own, strict=True)])

    def locate(self, index_B: Tensor) -> tuple[Tensor, Tensor]:
        """Group of each observation, and its rank in the group."""
        zero_B = torch.zeros_like(index_B)
        group_B, rank_B = (sum((index_B // s % size * own for size, s, own in axes), zero_B) for axes in self.axes)
        return group_B, rank_B

    def at(self, group_B: Tensor, rank_B: Tensor) -> Tensor:
        """Observation with this rank in the group."""
        index_B = torch.zeros_like(group_B)
        for part_B, axes in zip((group_B, rank_B), self.axes, strict=True):
            index_B = sum((part_B // own % size * stride for size, stride, own in axes), index_B)
        return index_B

    def count(self, group_B: Tensor) -> Tensor:
        """Number of observations in each group."""
        return torch.full_like(group_B, self.members)

    def outside(self, bits_B: Tensor, group_B: Tensor) -> Tensor:
        """Sample an observation of a different group, uniformly, from the given random bits."""
        drawn_B = scale_bits(bits_B, (self.groups - 1) * self.members)
        other_B = drawn_B // self.members
        return self.at(other_B + (other_B >= group_B), drawn_B % self.members)


class TableGroups:
    """Groups of any data set. An observation that lacks one of the shared factors is in no group (-1)."""

    def __init__(self, classes_NK: Tensor, by: tuple[int, ...], sizes: tuple[int, ...]) -> None:
        known_N = (classes_NK[:, list(by)] >= 0).all(1)
        keys = joint_classes(classes_NK[known_N][:, list(by)], [sizes[k] for k in by])
        _, numbers, counts_P = keys.unique(return_inverse=True, return_counts=True)
        self.groups, self.members = len(counts_P), int(counts_P.max()) if len(counts_P) else 0
        self.counts_P, self.starts_P = counts_P, counts_P.cumsum(0) - counts_P
        self.group_N = torch.full_like(classes_NK[:, 0], -1)
        self.group_N[known_N] = numbers
        within = numbers.argsort(stable=True)
        self.order = known_N.nonzero()[:, 0][within]  # known observations sorted by group
        self.rank_N = torch.zeros_like(classes_NK[:, 0])
        self.rank_N[self.order] = torch.arange(len(within), device=within.device) - self.starts_P[numbers[within]]

    def locate(self, index_B: Tensor) -> tuple[Tensor, Tensor]:
        return self.group_N[index_B], self.rank_N[index_B]

    def at(self, group_B: Tensor, rank_B: Tensor) -> Tensor:
        return self.order[self.starts_P[group_B] + rank_B]

    def count(self, group_B: Tensor) -> Tensor:
        return self.counts_P[group_B]

    def outside(self, bits_B: Tensor, group_B: Tensor) -> Tensor:
        count_B = self.counts_P[group_B]
        drawn_B = scale_bits(bits_B, len(self.order) - count_B)
        return self.order[torch.where(drawn_B < self.starts_P[group_B], drawn_B, drawn_B + count_B)]


Grouping = GridGroups | TableGroups


def joint_classes(classes_NK: Tensor, sizes: Sequence[int]) -> Tensor:
    """Return one number [N] per combination of classes, in the order of the combinations.

    The number of combinations may exceed 64 bits. Before a product could, the combinations that occur are renumbered:
    there are at most N of them.
    """
    joint_N, bound = torch.zeros_like(classes_NK[:, 0]), 1
    for class_N, size in zip(classes_NK.unbind(1), sizes, strict=True):
        if bound * size > _MAX_KEY:
            present, joint_N = joint_N.unique(return_inverse=True)
            bound = len(present)
        joint_N, bound = joint_N * size + class_N, bound * size
    return joint_N


def group_by(data: Dataset, by: tuple[int, ...]) -> Grouping:
    """Groups of the observations that share these factors."""
    if data.grid:
        return GridGroups(data.factor_sizes, by)
    return TableGroups(data.factors(all_indices(data)), by, data.factor_sizes)


def other_member(groups: Grouping, bits_B: Tensor, index_B: Tensor) -> Tensor:
    """Sample another observation of the same group, uniformly; the group must have at least two members."""
    group_B, rank_B = groups.locate(index_B)
    count_B = groups.count(group_B)
    return groups.at(group_B, (rank_B + 1 + scale_bits(bits_B, count_B - 1)) % count_B)


def members_pool(data: Dataset, groupings: tuple[Grouping, ...], size: int) -> Tensor | None:
    """Observations whose groups have at least `size` members; None if all observations qualify."""
    enough_N = torch.ones_like(all_indices(data), dtype=torch.bool)
    for groups in groupings:
        if isinstance(groups, TableGroups):
            enough_N &= (groups.group_N >= 0) & (groups.counts_P[groups.group_N.clamp_min(0)] >= size)
        elif groups.members < size:
            enough_N = torch.zeros_like(enough_N)
    if not bool(enough_N.any()):
        message = f"no observation of data {data.name!r} has a partner that shares the given factors; use fewer factors"
        raise UserError(message, argument="supervision", value=data.name, accepted="fewer factors")
    return None if bool(enough_N.all()) else enough_N.nonzero()[:, 0]
