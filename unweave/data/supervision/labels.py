"""Labels of some observations: few, binned, permuted or noisy.

Shape letters: B batch, L labelled factors.
"""

from dataclasses import dataclass
from typing import Self, final

from torch import Tensor

from unweave.contract import DataInfo
from unweave.data.dataset import Dataset
from unweave.data.supervision.kind import Call, Fields, Supervision, Tables, names_of
from unweave.data.supervision.label_mapping import label_warnings
from unweave.data.supervision.labelled_set import LabelledSet, known_indices, label_sizes
from unweave.errors import UserError
from unweave.ops.noise import fold, random_integers


@final
@dataclass(frozen=True)
class Labels(Supervision):
    """Labels of `n` observations, which are drawn independently of x."""

    n: int
    factors: tuple[int, ...]
    noise: float = 0.0
    bins: int = 0  # 0: not binned
    permute: bool = False
    balanced: bool = False
    seed: int | None = None  # None: the seed of the run

    name, syntax = "labels", "labels(n=100)"
    keywords = {
        "n": "number of labelled observations, or their share such as 0.01; default: all",
        "factors": "labelled factors; default: all",
        "noise": "probability that a label is replaced by a random class",
        "bins": "largest number of classes of a factor",
        "permute": "True: the classes are renamed at random",
        "balanced": "True: the same number of each class",
        "seed": "of the choice of observations and of the noise; default: the seed of the run",
    }
    batch_fields = ("labelled", "labels")
    stream = "labels"
    file_option = "--factors, a .csv with a file name and its labels per row"

    @classmethod
    def parse(cls, call: Call) -> Self:
        sizes, options = call.data.factor_sizes, call.options
        factors = call.factors("factors", tuple(range(len(sizes))))
        if not factors:
            raise _no_factors(call)
        noise = options.get("noise", 0.0)
        if isinstance(noise, bool) or not isinstance(noise, int | float) or not 0 <= noise <= 1:
            raise call.error("noise", "a number from 0 to 1")
        known = known_indices(call.data, factors)
        most = call.data.size if known is None else len(known)
        n, balanced, classes = _read_n(call, most), call.flag("balanced"), sizes[factors[0]]
        if balanced and (len(factors) > 1 or n % classes):
            raise call.error("balanced", f"given with one factor, and n a multiple of its classes ({classes} here)")
        bins = call.integer("bins", 0, 2, 2**31)
        seed = None if options.get("seed") is None else call.integer("seed", 0, 0, 2**62)
        return cls(min(n, most), factors, float(noise), bins, call.flag("permute"), balanced, seed)

    @classmethod
    def example(cls, data: Dataset) -> str:
        return f"labels(n={min(100, data.size)})" if data.factor_names else ""

    def info(self, data: Dataset) -> DataInfo:
        names = tuple(data.factor_names[k] for k in self.factors)
        sizes = label_sizes(data, self)
        return data.info._replace(labels=sizes, labelled=self.n, factors=names, supervision=self.text)

    def explain(self, data: Dataset) -> str:
        notes = [f"{self.noise:.0%} of them replaced at random"] if self.noise else []
        notes += [f"in at most {self.bins} classes"] if self.bins else []
        notes += ["their order permuted"] if self.permute else []
        notes += ["the same number of each class"] if self.balanced else []
        return f"Labels of {names_of(data, self.factors)} for {self.n} observations{''.join(f', {n}' for n in notes)}."

    def warnings(self, data: Dataset) -> list[str]:
        return label_warnings(data, self.factors, label_sizes(data, self))

    def labelled_set(self, data: Dataset, seed: int) -> LabelledSet:
        return LabelledSet(data, self, seed)

    def tables(self, data: Dataset, seed: int) -> Tables:
        return Tables(data, lookup=self.labelled_set(data, seed))

    def draw(self, tables: Tables, key: Tensor, plan: Fields, seed: Tensor | None) -> Fields:
        labelled: LabelledSet = tables.lookup
        slot_B = random_integers(fold(key, "slot"), (plan["x"].shape[0],), self.n)
        if seed is None or self.seed is not None:
            index_B, labels_BL = (column[slot_B] for column in labelled.table)
        else:
            index_B, labels_BL = labelled.assigned(seed, slot_B)
        return {"labelled": index_B, "labels": labels_BL}


def _no_factors(call: Call) -> UserError:
    """Return the error for data without factors, with the columns of its table that are not factors."""
    excluded = call.data.origin.source_info.excluded_columns
    reasons = ", ".join(f"column {name!r} is not a factor ({reason})" for name, reason in excluded.items())
    accepted = "a column with two or more classes" if excluded else Labels.file_option
    message = f"{call.context} needs factors, of which data {call.data.name!r} has none{reasons and f': {reasons}'}; "
    return UserError(message + f"give {accepted}", argument="supervision", value=call.text, accepted=accepted)


def _read_n(call: Call, max_n: int) -> int:
    """Return the number of labels; the size of the data is accepted even if some observations have no label."""
    size, n = call.data.size, call.options.get("n")
    if n is None:
        return size
    count = max(1, round(n * size)) if isinstance(n, float) and 0 < n <= 1 else n
    if isinstance(count, bool) or not isinstance(count, int) or not (1 <= count <= max_n or count == size):
        more = "or a fraction above 0 and up to 1.0" if max_n == size else "the number of observations with labels"
        raise call.error("n", f"an integer from 1 to {max_n}, {more}")
    return count
