"""Pairs that share either the content or the style. Shape letters: B batch."""

from dataclasses import dataclass
from typing import Self, final

import torch
from torch import Tensor

from unweave.data.dataset import Dataset
from unweave.data.supervision.grouping import other_member
from unweave.data.supervision.kind import Call, Fields, Supervision, Tables, grouped_tables, varying_factors
from unweave.ops.noise import fold, random_bits


@final
@dataclass(frozen=True)
class Match(Supervision):
    """Pairs that share either the content or the style, with equal odds (Tran et al. 2021)."""

    shared: tuple[int, ...]
    style: tuple[int, ...]

    name, syntax = "match", "match(content=['shape'])"
    meaning = "Pairs that share either {shared} or {style}."
    keywords = {"content": "factors that are the content", "style": "factors that are the style; default: all others"}
    batch_fields = ("pair", "shared")
    unit = "pairs"
    min_factors = 2

    @classmethod
    def parse(cls, call: Call) -> Self:
        content = call.factors("content")
        style = call.factors("style", tuple(i for i in varying_factors(call.data) if i not in content))
        if not style:
            raise call.error("content", "fewer factors, so that one is left for the style")
        if both := set(content) & set(style):
            raise call.error("style", f"factors that are not content, unlike {call.data.factor_names[min(both)]!r}")
        return cls(content, style)

    def tables(self, data: Dataset, seed: int) -> Tables:
        return grouped_tables(data, self.shared, self.style)

    def draw(self, tables: Tables, key: Tensor, plan: Fields, seed: Tensor | None) -> Fields:
        index_B = plan["x"]
        bits_B = random_bits(fold(key, "member"), (index_B.shape[0],))
        shared_B = random_bits(fold(key, "shared"), (index_B.shape[0],)) & 1
        content_B, style_B = (other_member(groups, bits_B, index_B) for groups in tables.groups)
        return {"pair": torch.where(shared_B == 0, content_B, style_B), "shared": shared_B}
