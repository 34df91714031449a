"""Groups of several images that share some factors.

Shape letters: B batch, S members of a group.
"""

from dataclasses import dataclass
from typing import Self, final

import torch
from torch import Tensor

from unweave.contract import DataInfo
from unweave.data.dataset import Dataset
from unweave.data.supervision.grouping import GridGroups, group_by
from unweave.data.supervision.kind import Call, Fields, Supervision, Tables
from unweave.errors import invalid
from unweave.ops.noise import fold, random_integers
from unweave.ops.shuffle import permuted, sample_without_replacement


@final
@dataclass(frozen=True)
class Groups(Supervision):
    """Sets of different observations that share some factors; all groups with enough members are equally likely."""

    shared: tuple[int, ...]
    size: int
    distinct: bool = False

    name, syntax = "groups", "groups(by=['shape'], size=2)"
    meaning = "Groups of {size} that share {shared}."
    keywords = {
        "by": "factors that the members of a group share",
        "size": "members per group",
        "distinct": "True: no group appears twice in a batch",
    }
    batch_fields = ("groups", "group_id")
    unit = "groups"
    file_option = "--groups, a .csv with a file name and a group name per row"

    @classmethod
    def parse(cls, call: Call) -> Self:
        return cls(call.factors("by"), call.integer("size", 2, 1, 4096), call.flag("distinct"))

    def info(self, data: Dataset) -> DataInfo:
        return data.info._replace(members=self.size, groups=_count(self.tables(data, 0)))

    def explain(self, data: Dataset) -> str:
        count = _count(self.tables(data, 0))
        smaller = group_by(data, self.shared).groups - count
        skipped = f"; {smaller} smaller ones are left out" if smaller else ""
        return f"{super().explain(data)} There are {count} groups{skipped}."

    def tables(self, data: Dataset, seed: int) -> Tables:
        groups = group_by(data, self.shared)
        if groups.members < self.size:
            accepted = f"at most {groups.members}, the size of the largest group of data {data.name!r}"
            raise invalid("size", self.size, accepted)
        large = None if isinstance(groups, GridGroups) else (groups.counts_P >= self.size).nonzero()[:, 0]
        return Tables(data, (groups,), lookup=large)  # the groups that are large enough; None: all

    def draw(self, tables: Tables, key: Tensor, plan: Fields, seed: Tensor | None) -> Fields:
        (groups,), batch, count = tables.groups, plan["x"].shape[0], _count(tables)
        if not self.distinct:
            number_B = random_integers(fold(key, "group"), (batch,), count)
        elif batch <= count:
            number_B = permuted(fold(key, "group"), torch.arange(batch, device=key.device), count)
        else:
            raise invalid("batch", batch, f"at most {count}, the number of groups", context="distinct=True")
        group_B = number_B if tables.lookup is None else tables.lookup[number_B]
        rank_BS = sample_without_replacement(fold(key, "members"), groups.count(group_B), self.size)
        return {"groups": groups.at(group_B[:, None].expand_as(rank_BS), rank_BS), "group_id": number_B}


def _count(tables: Tables) -> int:
    """Return the number of groups that are large enough."""
    return tables.groups[0].groups if tables.lookup is None else len(tables.lookup)
