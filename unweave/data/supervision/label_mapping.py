"""What labels tell of factors: which class of a method stands for which values, and what it is called."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch

from unweave.data.dataset import Dataset, all_indices, data_device
from unweave.data.ranges import Span, class_of, span_text
from unweave.data.supervision.labels import LabelledSet, label_sizes
from unweave.data.supervision.parse import read_supervision
from unweave.data.supervision.specs import Labels
from unweave.data.user.arrays import Arrays
from unweave.data.user.factor_table import repr_value


class LabelMapping(NamedTuple):
    """What a run was told about one factor."""

    factor: str
    classes: dict[float | str, int]  # the model's class of each value of the factor
    size: int  # how many classes the model has
    spans: tuple[Span, ...] = ()  # if it is continuous and was cut: from where to where each value stands for
    labelled_indices: frozenset[int] = frozenset()  # the observations it was told of

    def names(self) -> list[str]:
        """What each of the model's classes is called: the value it stands for, or several, or from where to where."""
        meant = [[place for place, y in enumerate(self.classes.values()) if y == number] for number in range(self.size)]
        return [self._name(places) or f"class {number}" for number, places in enumerate(meant)]

    def _name(self, places: Sequence[int]) -> str:
        if self.spans and places:  # neighbours, for only these are ever made one class
            return span_text((self.spans[places[0]][0], self.spans[places[-1]][1]))
        values = list(self.classes)
        return " or ".join(format_value(values[place]) for place in places)

    @property
    def many_to_one(self) -> bool:
        """Whether a class may stand for several values."""
        return bool(self.spans) or len(self.classes) > self.size

    def class_of(self, numbers_N: np.ndarray) -> np.ndarray:
        """The model's class of numbers of a factor that was cut, -1 where they are in none."""
        return np.array([*self.classes.values(), -1])[class_of(self.spans, numbers_N)]


def format_value(value: float | str) -> str:
    """A value of a factor as people read it."""
    return value if isinstance(value, str) else repr_value(value)


def spans_of(data: Dataset, k: int) -> tuple[Span, ...]:
    return data.factor_spans[k] if data.factor_spans else ()


def value_name(data: Dataset, k: int, number: int) -> str:
    """What a class of a factor is called."""
    spans = spans_of(data, k)
    return span_text(spans[number]) if spans else format_value(data.factor_values[k][number])


def exact_values(data: Dataset, k: int) -> np.ndarray:
    """Values of a continuous factor of every observation, with the precision of the table; nan if unknown."""
    origin, index_N = data.origin, data.origin_index(all_indices(data))
    if isinstance(origin, Arrays):
        return origin.table.numbers_NK[index_N.cpu().numpy(), k]
    return origin.values(index_N)[:, k].double().cpu().numpy()


def labelled_set(data: Dataset, supervision: str, seed: int) -> LabelledSet | None:
    """The observations that a run of this seed has labels of; None if it learns from something else."""
    spec = read_supervision(supervision, data)
    if not isinstance(spec, Labels):
        return None
    chosen = seed if spec.seed is None else spec.seed
    return LabelledSet(data, spec, torch.tensor(chosen, device=data_device(data)))


def label_mappings(used: LabelledSet) -> list[LabelMapping]:
    """The labelled factors in their order: made coarser and renamed as the labels were, without mistakes."""
    data, found = used.data, []
    for number, k in enumerate(used.spec.factors):
        values = data.factor_values[k]
        classes = dict(zip(values, used.class_labels(number).tolist(), strict=True))
        found.append(LabelMapping(data.factor_names[k], classes, used.sizes[number], spans_of(data, k)))
    return found


def label_mappings_with_indices(used: LabelledSet) -> list[LabelMapping]:
    """The same, with the observations whose label was used."""
    index_N, labels_NL = (part.cpu() for part in used.table)
    return [
        mapping._replace(labelled_indices=frozenset(index_N[labels_NL[:, number] >= 0].tolist()))
        for number, mapping in enumerate(label_mappings(used))
    ]


def describe_labels(supervision: str, data: Dataset) -> list[str]:
    """What one should know of the classes that labels make, a line each; nothing of other supervision."""
    spec = read_supervision(supervision, data)
    if not isinstance(spec, Labels):
        return []
    sizes = label_sizes(data, spec)
    cuts = [_cut_note(data, k, size) for k, size in zip(spec.factors, sizes) if data.factor_types[k] == "continuous"]
    return cuts + [note for k in spec.factors for note in _spelling_notes(data, k)]


def _cut_note(data: Dataset, k: int, size: int) -> str:
    """Of a continuous factor, which has no classes by itself."""
    name, numbers = data.factor_names[k], exact_values(data, k)
    known = np.unique(numbers[~np.isnan(numbers)])
    made = "are cut into" if size < len(known) else "make"
    fewer = f'; for fewer give bins: "labels(factors=[{name!r}], bins={min(5, size - 1)})"' if size > 2 else ""
    return (
        f"labels of {name!r} are continuous: {len(known):,} different numbers from {repr_value(known[0])} to "
        f"{repr_value(known[-1])} {made} {size} classes{fewer}"
    )


def _spelling_notes(data: Dataset, k: int) -> list[str]:
    """Of classes that differ in nothing but capital letters and spaces."""
    alike: dict[str, list[str]] = {}
    for value in data.factor_values[k]:
        if isinstance(value, str):
            alike.setdefault("".join(value.casefold().split()), []).append(value)
    return [
        f"labels of {data.factor_names[k]!r}: {_listed(same)} are {len(same)} classes; "
        "write them alike if they are meant to be one"
        for same in alike.values()
        if len(same) > 1
    ]


def _listed(values: Sequence[str]) -> str:
    return f"{', '.join(map(repr, values[:-1]))} and {values[-1]!r}"
