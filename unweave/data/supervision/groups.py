"""Observations that share some factors: which group one is in, and who else is there.

In a grid that is arithmetic on observation numbers. Elsewhere it is a table of the observations sorted by group,
made once.

Shape letters: N observations, B batch, P groups, S members.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from unweave.data.dataset import Dataset, all_indices
from unweave.ops.shuffle import scaled


class GridGroups:
    """Groups of a grid: one for each combination of the shared factors, all of the same size."""

    def __init__(self, sizes: tuple[int, ...], by: tuple[int, ...]) -> None:
        self.sizes, self.by = sizes, by
        self.groups = math.prod(sizes[k] for k in by)
        self.members = math.prod(sizes) // self.groups

    def place(self, index_B: Tensor) -> tuple[Tensor, Tensor]:
        """The group of an observation and its rank there."""
        group_B, rank_B, stride = torch.zeros_like(index_B), torch.zeros_like(index_B), math.prod(self.sizes)
        for k, size in enumerate(self.sizes):
            stride //= size
            class_B = index_B // stride % size
            if k in self.by:
                group_B = group_B * size + class_B
            else:
                rank_B = rank_B * size + class_B
        return group_B, rank_B

    def at(self, group_B: Tensor, rank_B: Tensor) -> Tensor:
        """The observation of this rank in the group."""
        index_B, stride = torch.zeros_like(group_B), 1
        for k in reversed(range(len(self.sizes))):
            size = self.sizes[k]
            if k in self.by:
                class_B, group_B = group_B % size, group_B // size
            else:
                class_B, rank_B = rank_B % size, rank_B // size
            index_B, stride = index_B + class_B * stride, stride * size
        return index_B

    def count(self, group_B: Tensor) -> Tensor:
        """How many observations the group has."""
        return torch.full_like(group_B, self.members)

    def outside(self, bits_B: Tensor, group_B: Tensor) -> Tensor:
        """An observation of another group, uniform by these random bits."""
        drawn_B = scaled(bits_B, (self.groups - 1) * self.members)
        other_B = drawn_B // self.members
        return self.at(other_B + (other_B >= group_B), drawn_B % self.members)


class TableGroups:
    """Groups of any data set. What lacks one of the shared factors is in none (group -1)."""

    def __init__(self, classes_NK: Tensor, by: tuple[int, ...], sizes: tuple[int, ...]) -> None:
        combined_N = torch.zeros_like(classes_NK[:, 0])
        for k in by:
            combined_N = combined_N * sizes[k] + classes_NK[:, k]
        known_N = (classes_NK[:, list(by)] >= 0).all(1)
        _, numbers, counts_P = combined_N[known_N].unique(return_inverse=True, return_counts=True)
        self.groups, self.members = len(counts_P), int(counts_P.max()) if len(counts_P) else 0
        self.counts_P, self.starts_P = counts_P, counts_P.cumsum(0) - counts_P
        self.group_N = torch.full_like(combined_N, -1)
        self.group_N[known_N] = numbers
        within = numbers.argsort(stable=True)
        self.order = known_N.nonzero()[:, 0][within]  # known observations sorted by group
        self.rank_N = torch.zeros_like(combined_N)
        self.rank_N[self.order] = torch.arange(len(within), device=within.device) - self.starts_P[numbers[within]]

    def place(self, index_B: Tensor) -> tuple[Tensor, Tensor]:
        return self.group_N[index_B], self.rank_N[index_B]

    def at(self, group_B: Tensor, rank_B: Tensor) -> Tensor:
        return self.order[self.starts_P[group_B] + rank_B]

    def count(self, group_B: Tensor) -> Tensor:
        return self.counts_P[group_B]

    def outside(self, bits_B: Tensor, group_B: Tensor) -> Tensor:
        count_B = self.counts_P[group_B]
        drawn_B = scaled(bits_B, len(self.order) - count_B)
        return self.order[torch.where(drawn_B < self.starts_P[group_B], drawn_B, drawn_B + count_B)]

    def crowded(self, size: int) -> Tensor:
        """Which observations are in a group of at least this size [N]."""
        return (self.group_N >= 0) & (self.counts_P[self.group_N.clamp_min(0)] >= size)


Grouping = GridGroups | TableGroups


def group_by(data: Dataset, by: tuple[int, ...]) -> Grouping:
    """The groups of observations that share these factors."""
    if data.grid:
        return GridGroups(data.factor_sizes, by)
    return TableGroups(data.factors(all_indices(data)), by, data.factor_sizes)


def other_member(groups: Grouping, bits_B: Tensor, index_B: Tensor) -> Tensor:
    """Another observation of the same group, uniform by these random bits; the group has two or more."""
    group_B, rank_B = groups.place(index_B)
    count_B = groups.count(group_B)
    return groups.at(group_B, (rank_B + 1 + scaled(bits_B, count_B - 1)) % count_B)
