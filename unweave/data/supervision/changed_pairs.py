"""Pairs that differ in k of some factors.

Shape letters: B batch, K factors, M factors that may change.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self, final

import torch
from torch import Tensor

from unweave.data.dataset import Dataset
from unweave.data.supervision.kind import Call, Fields, Supervision, Tables, names_of, varying_factors
from unweave.data.supervision.shared_pairs import SharedPairs
from unweave.errors import check_choice, invalid
from unweave.ops.noise import fold, random_bits, random_integers
from unweave.ops.shuffle import ranks


@final
@dataclass(frozen=True)
class ChangedPairs(Supervision):
    """Pairs that differ in k of some factors and share all others (Locatello et al. 2020).

    With rule "dlib", as in disentanglement_lib, one factor or k of them, with equal odds, get a value that may be the
    old one. `changed` is then the number of factors that were drawn anew.
    """

    low: int
    high: int
    factors: tuple[int, ...]
    rule: str = "paper"

    name, syntax = "pairs", "pairs(k=1)"
    keywords = {
        "k": "number of factors that differ, a range such as (1, 3), or 'uniform'",
        "change": "factors that may differ",
        "share": "factors that never differ",
        "rule": "paper, or dlib: as in disentanglement_lib",
    }
    batch_fields = ("pair", "changed")
    unit = "pairs"
    default = "pairs(k=1)"

    @classmethod
    def matches(cls, options: Mapping[str, Any]) -> bool:
        return "file" not in options and not SharedPairs.matches(options)

    @classmethod
    def parse(cls, call: Call) -> Self:
        data, options = call.data, call.options
        rule = options.get("rule", "paper")
        check_choice("rule", rule, ("paper", "dlib"), context=call.context)
        if "change" in options and "share" in options:
            raise call.error("change", "left out if share is given")
        if not is_complete(data):
            hint = f"use {SharedPairs.example(data)}" if data.factor_names else ""
            raise invalid("data", data.name, "a grid of factors such as sprites", context=call.context, hint=hint)
        varying, shared = varying_factors(data), call.factors("share", ())
        factors = call.factors("change", tuple(i for i in varying if i not in shared))
        if constant := [data.factor_names[i] for i in factors if i not in varying]:
            raise call.error("change", f"factors with two or more values, unlike {constant[0]!r}")
        if not factors:
            raise call.error("share", "fewer factors, so that one is left to change")
        low, high = _read_k(call, len(factors), "change" in options, len(factors) == len(varying))
        return cls(low, high, factors, str(rule))

    @classmethod
    def example(cls, data: Dataset) -> str:
        return cls.syntax if is_complete(data) else ""

    def explain(self, data: Dataset) -> str:
        count = str(self.low) if self.low == self.high else f"{self.low} to {self.high}"
        rule = " (one of them half the time, and values may stay, as in disentanglement_lib)"
        return f"Pairs that differ in {count} of {names_of(data, self.factors)}{rule if self.rule == 'dlib' else ''}."

    def draw(self, tables: Tables, key: Tensor, plan: Fields, seed: Tensor | None) -> Fields:
        data, index_B = tables.data, plan["x"]
        k_B = torch.full_like(index_B, self.low)
        if self.high > self.low:
            k_B = self.low + random_integers(fold(key, "k"), (index_B.shape[0],), self.high - self.low + 1)
        if self.rule == "dlib":
            k_B = 1 + (random_bits(fold(key, "one"), (index_B.shape[0],)) & 1) * (k_B - 1)
        chosen_BK = choose_factors(fold(key, "which"), k_B, self.factors, len(data.factor_sizes))
        old_BK, may_stay = data.factors(index_B), self.rule == "dlib"
        factors_BK = draw_factors(fold(key, "values"), old_BK, chosen_BK, data.factor_sizes, may_stay)
        return {"pair": data.index(factors_BK), "changed": k_B}


def is_complete(data: Dataset) -> bool:
    """Return True if the data contain a partner that differs in any chosen factors."""
    return data.grid or data.partners


def _read_k(call: Call, max_k: int, has_change: bool, all_factors: bool) -> tuple[int, int]:
    """Return the smallest and the largest number of changes; "uniform" never changes every factor of the data."""
    k = call.options.get("k", max_k if has_change else None)
    highest = max_k - 1 if all_factors else max_k
    if k == "uniform" and highest >= 1:
        return 1, highest
    ends: Sequence[Any] = k if isinstance(k, list | tuple) and len(k) == 2 else (k, k)
    integers = all(isinstance(end, int) and not isinstance(end, bool) for end in ends)
    if not integers or not 1 <= ends[0] <= ends[1] <= max_k:
        more = f", a range such as (1, {max_k}) or 'uniform'" if max_k > 1 else ""
        raise call.error("k", f"an integer from 1 to {max_k}{more}")
    return ends[0], ends[1]


def choose_factors(key: Tensor, k_B: Tensor, factors: tuple[int, ...], total: int) -> Tensor:
    """For each row sample a set of k of these factors, uniformly; booleans over all factors [B, K]."""
    rank_BM = ranks(random_bits(key, (k_B.shape[0], len(factors))))
    chosen = dict(zip(factors, (rank_BM < k_B[:, None]).unbind(1), strict=True))
    never = torch.zeros_like(k_B, dtype=torch.bool)
    return torch.stack([chosen.get(i, never) for i in range(total)], dim=1)


def draw_factors(
    key: Tensor, factors_BK: Tensor, chosen_BK: Tensor, sizes: tuple[int, ...], may_stay: bool = False
) -> Tensor:
    """Replace the chosen factors by another value, uniformly drawn, or by any value if they may stay as they are."""
    columns = []
    for i, size in enumerate(sizes):
        old = factors_BK[:, i]
        drawn = random_integers(fold(key, i), (factors_BK.shape[0],), size if may_stay else size - 1)
        new = drawn if may_stay else (old + 1 + drawn) % size
        columns.append(torch.where(chosen_BK[:, i], new, old))
    return torch.stack(columns, dim=1)
