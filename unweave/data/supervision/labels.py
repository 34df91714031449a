"""Labels for some observations: few, coarse, in a false order, or wrong now and then.

Which observations are labelled, and with what mistakes, is a function of a seed, computed without a table, so that
every run of a fleet can have labels of its own. Mistakes are made once: an observation keeps its label.

Shape letters: N labelled observations, B batch, K factors, L labelled factors.
"""

from __future__ import annotations

import torch
from torch import Tensor

from unweave.data.dataset import Dataset, all_indices
from unweave.data.supervision.groups import GridGroups, TableGroups, group_by
from unweave.data.supervision.specs import Labels
from unweave.errors import UserError
from unweave.ops.noise import fold, random_bits, random_integers
from unweave.ops.shuffle import permuted, scaled

Fields = dict[str, Tensor]


def label_sizes(data: Dataset, spec: Labels) -> tuple[int, ...]:
    """The number of classes of each labelled factor."""
    return tuple(_coarse(data.factor_sizes[k], spec.bins) for k in spec.factors)


def label_count(data: Dataset, spec: Labels) -> int:
    """How many observations are labelled: of those asked for, as many as have a label."""
    return min(spec.n, most_labels(data, spec.factors))


def most_labels(data: Dataset, factors: tuple[int, ...]) -> int:
    """How many observations have a label: one of these factors is known of them."""
    return data.size if data.grid else int(_known(data, factors).sum())


def _known(data: Dataset, factors: tuple[int, ...]) -> Tensor:
    return (data.factors(all_indices(data))[:, list(factors)] >= 0).any(1)


def _coarse(size: int, bins: int) -> int:
    return min(size, bins) if bins else size


class LabelledSet:
    """The labelled observations of a data set."""

    pool = None

    def __init__(self, data: Dataset, spec: Labels, seed: Tensor) -> None:
        self.data, self.spec, self.sizes, self.seed = data, spec, label_sizes(data, spec), seed
        self.known = self._known()
        self.groups = self._balanced() if spec.balanced else None
        # A run of its own has one seed: what it says is looked up, not computed anew in every step.
        self.table = self.assigned(seed, torch.arange(self.spec.n, device=seed.device))

    def _known(self) -> Tensor | None:
        """The observations of which any of the labelled factors is known, if not all are such."""
        if self.data.grid:
            return None
        known_N = _known(self.data, self.spec.factors)
        if bool(known_N.all()):
            return None
        self.spec = self.spec._replace(n=min(self.spec.n, int(known_N.sum())))
        return known_N.nonzero()[:, 0]

    def _balanced(self) -> GridGroups | TableGroups:
        groups, classes = group_by(self.data, self.spec.factors), self.data.factor_sizes[self.spec.factors[0]]
        least = groups.members if isinstance(groups, GridGroups) else int(groups.counts_P.min())
        each = self.spec.n // classes
        if groups.groups < classes or least < each:
            rarest = 0 if groups.groups < classes else least
            raise UserError(
                f"supervision: n={self.spec.n} with balanced=True needs {each} observations of every class, but "
                f"the rarest of data {self.data.name!r} has {rarest}; "
                f"{f'give at most n={rarest * classes}' if rarest else 'leave balanced out'}"
            )
        return groups

    def assigned(self, seed: Tensor, slot_B: Tensor) -> tuple[Tensor, Tensor]:
        """The observation and the labels [B, L] of these of the n labelled ones, by the seed."""
        key = fold(seed, "labels")
        index_B = self._observation(fold(key, "which"), slot_B)
        columns = self.data.factors(index_B).unbind(1)
        told = [self._told(key, index_B, columns[k], number) for number, k in enumerate(self.spec.factors)]
        return index_B, torch.stack(told, dim=1)

    def _observation(self, key: Tensor, slot_B: Tensor) -> Tensor:
        size = self.data.size if self.known is None else len(self.known)
        if self.groups is not None:
            class_B, rank_B = slot_B % self.sizes_before, slot_B // self.sizes_before
            return self.groups.at(class_B, permuted(fold(key, class_B), rank_B, self.groups.count(class_B)))
        chosen_B = slot_B if self.spec.n == size else permuted(key, slot_B, size)
        return chosen_B if self.known is None else self.known[chosen_B]

    @property
    def sizes_before(self) -> int:
        """The classes of the one factor that is balanced, before they are made coarser."""
        return self.data.factor_sizes[self.spec.factors[0]]

    def _told(self, key: Tensor, index_B: Tensor, class_B: Tensor, number: int) -> Tensor:
        """What is said of one factor: made coarser, then renamed, then mistaken. What is unknown stays unknown."""
        spec, size = self.spec, self.sizes[number]
        told_B = self._label(key, class_B.clamp_min(0), number)
        if spec.noise:
            chance_B = fold(fold(fold(key, "noise"), number), index_B)
            wrong_B = scaled(chance_B, 2**31) < round(spec.noise * 2**31)
            told_B = torch.where(wrong_B, scaled(fold(chance_B, "class"), size), told_B)
        return torch.where(class_B < 0, class_B, told_B)

    def _label(self, key: Tensor, class_B: Tensor, number: int) -> Tensor:
        """The label that stands for these classes of one factor."""
        size, full = self.sizes[number], self.data.factor_sizes[self.spec.factors[number]]
        label_B = class_B * size // full if size < full else class_B
        if self.spec.permute:
            label_B = random_bits(fold(fold(key, "permute"), number), (size,)).argsort()[label_B]
        return label_B

    def class_labels(self, number: int) -> Tensor:
        """The label of every class of one of the labelled factors, without mistakes."""
        full = self.data.factor_sizes[self.spec.factors[number]]
        return self._label(fold(self.seed, "labels"), torch.arange(full, device=self.seed.device), number)

    def __call__(self, key: Tensor, batch: int, seed: Tensor | None) -> Fields:
        slot_B = random_integers(fold(key, "slot"), (batch,), self.spec.n)
        if seed is None:
            index_B, labels_BL = (table[slot_B] for table in self.table)
        else:
            index_B, labels_BL = self.assigned(seed, slot_B)
        return {"labelled": index_B, "labels": labels_BL}
