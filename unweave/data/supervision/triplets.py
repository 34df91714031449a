"""Triplets: an image, one that shares some factors with it, and one that does not. Shape letters: B batch."""

from dataclasses import dataclass
from typing import Self, final

from torch import Tensor

from unweave.data.dataset import Dataset
from unweave.data.supervision.grouping import other_member
from unweave.data.supervision.kind import Call, Fields, Supervision, Tables, grouped_tables
from unweave.errors import invalid
from unweave.ops.noise import fold, random_bits


@final
@dataclass(frozen=True)
class Triplets(Supervision):
    """An observation, another one that shares some factors, and one that differs in at least one of them."""

    shared: tuple[int, ...]

    name, syntax = "triplets", "triplets(by=['shape'])"
    meaning = "Triplets: an image, another with the same {shared}, and one with a different one."
    keywords = {"by": "factors that x and positive share"}
    batch_fields = ("positive", "negative")
    unit = "triplets"

    @classmethod
    def parse(cls, call: Call) -> Self:
        return cls(call.factors("by"))

    def tables(self, data: Dataset, seed: int) -> Tables:
        found = grouped_tables(data, self.shared)
        if found.groups[0].groups < 2:
            names = [data.factor_names[k] for k in self.shared]
            raise invalid("by", names, f"factors in which observations of data {data.name!r} differ")
        return found

    def draw(self, tables: Tables, key: Tensor, plan: Fields, seed: Tensor | None) -> Fields:
        (groups,), index_B = tables.groups, plan["x"]
        near, far = (random_bits(fold(key, name), (index_B.shape[0],)) for name in ("positive", "negative"))
        group_B, _ = groups.locate(index_B)
        return {"positive": other_member(groups, near, index_B), "negative": groups.outside(far, group_B)}
