"""Names of the classes that labels define, and warnings about classes that the user may not expect."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from unweave.data.dataset import Dataset, all_indices
from unweave.data.ranges import Span, class_of, span_text
from unweave.data.supervision.labelled_set import LabelledSet
from unweave.data.user.factor_table import repr_value


class LabelMapping(NamedTuple):
    """Classes of the model for the values of one labelled factor."""

    factor: str
    classes: dict[float | str, int]  # value of the factor -> class of the model
    size: int  # number of classes of the model
    spans: tuple[Span, ...] = ()  # of a binned continuous factor, the range of each value

    def names(self) -> list[str]:
        """Name of each class of the model: its value, its values, or their range."""
        positions: list[list[int]] = [[] for _ in range(self.size)]
        for position, y in enumerate(self.classes.values()):
            positions[y].append(position)
        values = list(self.classes)
        return [self._name(values, found) or f"class {k}" for k, found in enumerate(positions)]

    def _name(self, values: Sequence[float | str], positions: Sequence[int]) -> str:
        if self.spans and positions:  # of neighbouring ranges: others are never joined
            return span_text((self.spans[positions[0]][0], self.spans[positions[-1]][1]))
        return " or ".join(format_value(values[position]) for position in positions)

    @property
    def many_to_one(self) -> bool:
        """True if a class may stand for several values."""
        return bool(self.spans) or len(self.classes) > self.size

    def class_of(self, numbers_N: np.ndarray) -> np.ndarray:
        """Class of each number of a binned factor; -1 if the number is outside all ranges."""
        return np.array([*self.classes.values(), -1])[class_of(self.spans, numbers_N)]


def format_value(value: float | str) -> str:
    return value if isinstance(value, str) else repr_value(value)


def spans_of(data: Dataset, k: int) -> tuple[Span, ...]:
    return data.factor_spans[k] if data.factor_spans else ()


def value_name(data: Dataset, k: int, number: int) -> str:
    """Name of a class of a factor: its value or its range."""
    spans = spans_of(data, k)
    return span_text(spans[number]) if spans else format_value(data.factor_values[k][number])


def label_mappings(labelled: LabelledSet) -> list[LabelMapping]:
    """Mapping of each labelled factor: binned and permuted like the labels, without noise."""
    data, found = labelled.data, []
    for number, k in enumerate(labelled.spec.factors):
        classes = dict(zip(data.factor_values[k], labelled.class_labels(number).tolist(), strict=True))
        found.append(LabelMapping(data.factor_names[k], classes, labelled.sizes[number], spans_of(data, k)))
    return found


def label_warnings(data: Dataset, factors: Sequence[int], sizes: Sequence[int]) -> list[str]:
    """Warnings about continuous factors and about classes with similar names, one line each."""
    pairs = zip(factors, sizes, strict=True)
    binned = [_binned(data, k, size) for k, size in pairs if data.factor_types[k] == "continuous"]
    return binned + [line for k in factors for line in _similar_names(data, k)]


def _binned(data: Dataset, k: int, size: int) -> str:
    name, numbers = data.factor_names[k], data.exact_values(all_indices(data))[:, k].numpy()
    known = np.unique(numbers[~np.isnan(numbers)])
    verb = "are cut into" if size < len(known) else "make"
    fewer = f'; for fewer classes set bins: "labels(factors=[{name!r}], bins={min(5, size - 1)})"' if size > 2 else ""
    return (
        f"labels of {name!r} are continuous: {len(known):,} different numbers from {repr_value(known[0])} to "
        f"{repr_value(known[-1])} {verb} {size} classes{fewer}"
    )


def _similar_names(data: Dataset, k: int) -> list[str]:
    """Classes that differ only in capital letters and spaces."""
    similar: dict[str, list[str]] = {}
    for value in data.factor_values[k]:
        if isinstance(value, str):
            similar.setdefault("".join(value.casefold().split()), []).append(repr(value))
    return [
        f"labels of {data.factor_names[k]!r}: {', '.join(names[:-1])} and {names[-1]} are {len(names)} classes; "
        "use one spelling if they are one class"
        for names in similar.values()
        if len(names) > 1
    ]
