"""The order of two images by a factor. Shape letters: B batch."""

from dataclasses import dataclass
from typing import Self, final

from torch import Tensor

from unweave.data.dataset import Dataset
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
        return grouped_tables(data, self.factor, size=1)

    def draw(self, tables: Tables, key: Tensor, plan: Fields, seed: Tensor | None) -> Fields:
        # By value, not by class: a continuous factor has more values than classes.
        first_B, second_B = (tables.data.values(plan[field])[:, self.factor[0]] for field in ("x", "x_other"))
        return {"order": (first_B - second_B).sign().long()}
