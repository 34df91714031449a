"""Draw the batches that a method needs from a data set.

A batch is a function of its key and made of tensor operations only. The engine can therefore record the drawing of a
batch together with the training step, and draw for many runs at once. Factor sizes enter as plain numbers and tables
are computed once, on the device of the data: a recorded step must not copy constants from the host.

Shape letters: B batch.
"""

from torch import Tensor

from unweave.contract import Batch
from unweave.data.dataset import Dataset
from unweave.data.supervision.kind import Supervision
from unweave.data.supervision.parse import check_needs, parse_supervision
from unweave.errors import check_choice
from unweave.ops.noise import fold, random_integers

IMAGE_FIELDS = ("x", "x_other", "pair", "labelled", "groups", "positive", "negative", "clips")


class Sampler:
    """Draws batches with exactly the fields in `needs`, observations uniformly with replacement.

    Parameters
    ----------
    data : the data set
    needs : names of the fields of `Batch`
    supervision : a text such as "pairs(k=1)", or the `Supervision` parsed from one
    seed : seed of the run, which determines the labelled observations; in a fleet each call has a seed instead
    """

    def __init__(
        self, data: Dataset, needs: tuple[str, ...], supervision: str | Supervision = "none", *, seed: int = 0
    ) -> None:
        for field in needs:
            check_choice("batch field", field, Batch._fields)
        self.data, self.needs = data, tuple(needs)
        self.supervision = parse_supervision(supervision, data)
        check_needs(self.supervision, needs, data)
        self.tables = self.supervision.tables(data, seed)

    def __call__(self, key: Tensor, batch: int, seed: Tensor | None = None) -> Batch:
        """Return the batch of this key, an int64 scalar on the device of the data."""
        plan = self.plan(key, batch, seed)
        return Batch(**{name: self._images(plan[name]) if name in IMAGE_FIELDS else plan[name] for name in self.needs})

    def plan(self, key: Tensor, batch: int, seed: Tensor | None = None) -> dict[str, Tensor]:
        """Return the batch with indices of observations instead of images."""
        plan = {"x": self._uniform(fold(key, "x"), batch)}
        if "x_other" in self.needs or "order" in self.needs:
            plan["x_other"] = self._uniform(fold(key, "second"), batch)
        plan["x_index"] = plan["x"]
        if not self.supervision.batch_fields:
            return plan
        return plan | self.supervision.draw(self.tables, fold(key, self.supervision.stream), plan, seed)

    def _uniform(self, key: Tensor, batch: int) -> Tensor:
        pool = self.tables.pool
        if pool is None:
            return random_integers(key, (batch,), self.data.size)
        return pool[random_integers(key, (batch,), len(pool))]

    def _images(self, index: Tensor) -> Tensor:
        if index.ndim == 1:
            return self.data.images(index)
        return self.data.images(index.flatten()).unflatten(0, index.shape)
