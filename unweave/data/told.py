"""What labels tell of factors: which class of a method stands for which values, and what it is called."""

from __future__ import annotations

from typing import NamedTuple

import torch

from unweave.data.dataset import Dataset
from unweave.data.grouping import all_numbers
from unweave.data.kinds import Labels
from unweave.data.labelling import LabelledSet
from unweave.data.supervision import read_supervision
from unweave.data.table import shown


class Told(NamedTuple):
    """What a run was told about one factor."""

    factor: str
    classes: dict[float | str, int]  # the model's class of each value of the factor
    size: int  # how many classes the model has
    known: frozenset[int] = frozenset()  # the observations it was told of

    def names(self) -> list[str]:
        """What each of the model's classes is called: the value it stands for, or several."""
        values = [[value for value, number in self.classes.items() if number == y] for y in range(self.size)]
        return [" or ".join(map(plain, some)) or f"class {y}" for y, some in enumerate(values)]


def plain(value: float | str) -> str:
    """A value of a factor as people read it."""
    return value if isinstance(value, str) else shown(value)


def labelled_set(data: Dataset, supervision: str, seed: int) -> LabelledSet | None:
    """The observations that a run of this seed has labels of; None if it learns from something else."""
    want = read_supervision(supervision, data)
    if not isinstance(want, Labels):
        return None
    chosen = seed if want.seed is None else want.seed
    return LabelledSet(data, want, torch.tensor(chosen, device=all_numbers(data).device))


def told_classes(used: LabelledSet) -> list[Told]:
    """The labelled factors in their order: made coarser and renamed as the labels were, without mistakes."""
    data, found = used.data, []
    for number, k in enumerate(used.want.factors):
        values = getattr(data, "factor_values", {k: tuple(range(data.factor_sizes[k]))})[k]
        classes = dict(zip(values, used.meaning(number).tolist(), strict=True))
        found.append(Told(data.factor_names[k], classes, used.sizes[number]))
    return found


def told_observations(used: LabelledSet) -> list[Told]:
    """The same, with the observations whose label was used."""
    index_N, labels_NL = (part.cpu() for part in used.table)
    return [
        told._replace(known=frozenset(index_N[labels_NL[:, number] >= 0].tolist()))
        for number, told in enumerate(told_classes(used))
    ]
