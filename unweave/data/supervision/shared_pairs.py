"""Pairs that share some factors.

Shape letters: B batch, K factors.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self, final

from torch import Tensor

from unweave.data.dataset import Dataset
from unweave.data.supervision.grouping import other_member
from unweave.data.supervision.kind import Call, Fields, Supervision, Tables, grouped_tables
from unweave.ops.noise import random_bits


@final
@dataclass(frozen=True)
class SharedPairs(Supervision):
    """Pairs that share some factors, uniform over all other observations that share them."""

    shared: tuple[int, ...]

    name, syntax = "pairs", "pairs(share=['shape'])"
    meaning = "Pairs that share {shared}."
    keywords = {"share": "factors that are shared; all others may differ"}
    batch_fields = ("pair", "changed")
    unit = "pairs"

    @classmethod
    def matches(cls, options: Mapping[str, Any]) -> bool:
        return bool(options.get("share")) and options.get("k") is None and not {"change", "file"} & set(options)

    @classmethod
    def parse(cls, call: Call) -> Self:
        return cls(call.factors("share"))

    def tables(self, data: Dataset, seed: int) -> Tables:
        return grouped_tables(data, self.shared)

    def draw(self, tables: Tables, key: Tensor, plan: Fields, seed: Tensor | None) -> Fields:
        index_B, data = plan["x"], tables.data
        pair_B = other_member(tables.groups[0], random_bits(key, (index_B.shape[0],)), index_B)
        differs_BK = data.factors(index_B) != data.factors(pair_B)
        return {"pair": pair_B, "changed": differs_BK.sum(1)}
