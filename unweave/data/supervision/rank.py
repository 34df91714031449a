"""The order of two images by a factor. Shape letters: B batch."""

from dataclasses import dataclass
from typing import Self, final

from torch import Tensor

from unweave.data.dataset import Dataset, all_indices, data_device
from unweave.data.supervision.kind import Call, Fields, Supervision, Tables, grouped_tables


@final
@dataclass(frozen=True)
class Rank(Supervision):
    """Which of two independent observations has the larger value of a factor (rank pairing, Shu et al. 2020)."""

    factor: tuple[int]

    name, syntax = "rank", "rank(factor='shape')"
    meaning = "Which of two observations has the larger value of {factor}."
    keywords = {"factor": "factor by which images are ordered"}
    batch_fields = ("order",)

    @classmethod
    def parse(cls, call: Call) -> Self:
        factors = call.factors("factor")
        if len(factors) != 1 or call.data.factor_sizes[factors[0]] < 2:
            raise call.error("factor", "one factor with two or more values")
        return cls(factors)

    def tables(self, data: Dataset, seed: int) -> Tables:
        tables = grouped_tables(data, self.factor, size=1)
        return tables if data.grid else tables._replace(lookup=_ranks(data, self.factor[0]))

    def draw(self, tables: Tables, key: Tensor, plan: Fields, seed: Tensor | None) -> Fields:
        (k,), rank_N = self.factor, tables.lookup
        first_B, second_B = (
            tables.data.factors(plan[field])[:, k] if rank_N is None else rank_N[plan[field]]
            for field in ("x", "x_other")
        )
        return {"order": (first_B - second_B).sign()}


def _ranks(data: Dataset, k: int) -> Tensor:
    """Return the rank of each observation's value among all different ones, int64.

    By value, not by class: a continuous factor has more values than classes. Ranks are exact on every device, also on
    those that have no float64.
    """
    values_N = data.exact_values(all_indices(data))[:, k]
    return values_N.unique(return_inverse=True)[1].to(data_device(data))
