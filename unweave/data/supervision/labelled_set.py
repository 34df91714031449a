"""The labelled observations of a run.

Which observations are labelled, and with what noise, is a function of a seed and needs no table, so that every run of
a fleet can have its own. An observation keeps its label, right or wrong, for the whole run.

Shape letters: N observations, B batch, K factors, L labelled factors.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from unweave.data.dataset import Dataset, all_indices, data_device
from unweave.data.supervision.grouping import GridGroups, Grouping, group_by
from unweave.errors import invalid
from unweave.ops.noise import fold, random_bits, scale_bits
from unweave.ops.shuffle import permuted

if TYPE_CHECKING:
    from unweave.data.supervision.labels import Labels


def label_sizes(data: Dataset, spec: Labels) -> tuple[int, ...]:
    """Number of classes of each labelled factor, after binning."""
    sizes = (data.factor_sizes[k] for k in spec.factors)
    return tuple(min(size, spec.bins) if spec.bins else size for size in sizes)


def known_indices(data: Dataset, factors: tuple[int, ...]) -> Tensor | None:
    """Observations of which at least one of these factors is known; None if these are all."""
    if data.grid:
        return None
    known_N = (data.factors(all_indices(data))[:, list(factors)] >= 0).any(1)
    return None if bool(known_N.all()) else known_N.nonzero()[:, 0]


class LabelledSet:
    """The labelled observations of a data set and their labels, by a seed."""

    def __init__(self, data: Dataset, spec: Labels, seed: int) -> None:
        self.data, self.spec, self.sizes = data, spec, label_sizes(data, spec)
        self.seed = torch.tensor(seed if spec.seed is None else spec.seed, device=data_device(data))
        self.known = known_indices(data, spec.factors)
        self.groups = self._balanced_groups() if spec.balanced else None
        # A single run has one seed: its labels are looked up instead of computed in every step.
        self.table = self.assigned(self.seed, torch.arange(spec.n, device=self.seed.device))

    def is_labelled(self, index_N: Tensor) -> Tensor:
        """Return which of these observations are labelled; all repetitions of an original observation are."""
        return torch.isin(self.data.origin_index(index_N), self.data.origin_index(self.table[0]))

    def complete(self) -> LabelledSet:
        """Return the set in which every observation with a known factor is labelled, without noise."""
        most = self.data.size if self.known is None else len(self.known)
        return LabelledSet(self.data, replace(self.spec, n=most, noise=0.0, balanced=False), int(self.seed))

    def assigned(self, seed: Tensor, slot_B: Tensor) -> tuple[Tensor, Tensor]:
        """Return the observations in these slots 0..n-1 and their labels [B, L]."""
        key = fold(seed, "labels")
        index_B = self._observation(fold(key, "which"), slot_B)
        columns = self.data.factors(index_B).unbind(1)
        labels = [self._noisy_label(key, index_B, columns[k], number) for number, k in enumerate(self.spec.factors)]
        return index_B, torch.stack(labels, dim=1)

    def class_labels(self, number: int) -> Tensor:
        """Return the label of every class of one of the labelled factors, without noise."""
        full = self.data.factor_sizes[self.spec.factors[number]]
        return self._label(fold(self.seed, "labels"), torch.arange(full, device=self.seed.device), number)

    def _balanced_groups(self) -> Grouping:
        data, n = self.data, self.spec.n
        groups, classes = group_by(data, self.spec.factors), data.factor_sizes[self.spec.factors[0]]
        smallest = groups.members if isinstance(groups, GridGroups) else int(groups.counts_P.min())
        rarest = 0 if groups.groups < classes else smallest
        if rarest < n // classes:
            accepted = f"at most {rarest * classes}" if rarest else "given without balanced"
            hint = f"the rarest class of data {data.name!r} has {rarest} observations"
            raise invalid("n", n, accepted, context=f"supervision={self.spec.text!r}", hint=hint)
        return groups

    def _observation(self, key: Tensor, slot_B: Tensor) -> Tensor:
        size = self.data.size if self.known is None else len(self.known)
        if self.groups is not None:
            classes = self.data.factor_sizes[self.spec.factors[0]]
            class_B, rank_B = slot_B % classes, slot_B // classes
            return self.groups.at(class_B, permuted(fold(key, class_B), rank_B, self.groups.count(class_B)))
        chosen_B = slot_B if self.spec.n == size else permuted(key, slot_B, size)
        return chosen_B if self.known is None else self.known[chosen_B]

    def _noisy_label(self, key: Tensor, index_B: Tensor, class_B: Tensor, number: int) -> Tensor:
        """Return the label of one factor: binned, then permuted, then noisy; -1 if the factor is unknown."""
        spec, size = self.spec, self.sizes[number]
        label_B = self._label(key, class_B.clamp_min(0), number)
        if spec.noise:
            chance_B = fold(fold(fold(key, "noise"), number), index_B)
            wrong_B = scale_bits(chance_B, 2**31) < round(spec.noise * 2**31)
            label_B = torch.where(wrong_B, scale_bits(fold(chance_B, "class"), size), label_B)
        return torch.where(class_B < 0, class_B, label_B)

    def _label(self, key: Tensor, class_B: Tensor, number: int) -> Tensor:
        """Return the binned and permuted label of these classes of one factor."""
        size, full = self.sizes[number], self.data.factor_sizes[self.spec.factors[number]]
        label_B = class_B * size // full if size < full else class_B
        if self.spec.permute:
            label_B = random_bits(fold(fold(key, "permute"), number), (size,)).argsort()[label_B]
        return label_B
