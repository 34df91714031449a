"""From a data set to the batches a method asks for.

A batch is a function of its key alone and made of tensor operations only, so that the engine can record the
drawing of a batch together with the training step. Factor sizes enter as plain numbers: a recorded step must not
copy constants from the host.

Shape letters: B batch, K factors, M movable factors (those with more than one value).
"""

from __future__ import annotations

import torch
from torch import Tensor

from unweave.contract import Batch, UserError
from unweave.data.dataset import Dataset
from unweave.data.spec import check_name, parse_call
from unweave.ops.noise import fold, random_bits, random_integers

_PAIRED = ("pair", "changed")


def choose_factors(key: Tensor, k_B: Tensor, sizes: tuple[int, ...]) -> Tensor:
    """For each row a uniformly drawn set of k factors, of those with more than one value, as booleans [B, K].

    Random numbers are ranked by comparing all pairs (equal ones by position): K is small, and unlike a sort this
    is the same arithmetic on every device.
    """
    movable = [i for i, size in enumerate(sizes) if size > 1]
    draw_BM = random_bits(key, (k_B.shape[0], len(movable)))
    mine, other = draw_BM[:, :, None], draw_BM[:, None, :]
    earlier_MM = torch.ones(len(movable), len(movable), dtype=torch.bool, device=key.device).tril(-1)
    rank_BM = ((other < mine) | ((other == mine) & earlier_MM)).sum(-1)
    chosen = dict(zip(movable, (rank_BM < k_B[:, None]).unbind(1), strict=True))
    never = torch.zeros_like(k_B, dtype=torch.bool)
    return torch.stack([chosen.get(i, never) for i in range(len(sizes))], dim=1)


def change_factors(key: Tensor, factors_BK: Tensor, chosen_BK: Tensor, sizes: tuple[int, ...]) -> Tensor:
    """The chosen factors replaced by a uniformly drawn other value, the rest kept."""
    columns = []
    for i, size in enumerate(sizes):
        old = factors_BK[:, i]
        step = 1 + random_integers(fold(key, i), (factors_BK.shape[0],), size - 1)  # 1..size-1: never back to old
        columns.append(torch.where(chosen_BK[:, i], (old + step) % size, old))
    return torch.stack(columns, dim=1)


def read_supervision(text: str, data: Dataset, needs: tuple[str, ...]) -> int | None:
    """How many factors of a pair change, 0 standing for a number drawn anew for each; None without pairs."""
    name, options = parse_call(text)
    check_name("supervision", name, ("none", "pairs"))
    for option in options:
        check_name(f"supervision {name!r}: option", option, ("k",) if name == "pairs" else ())
    wanted = any(field in _PAIRED for field in needs)
    if not wanted and name == "none":
        return None
    if not wanted:
        raise UserError(f"supervision={text!r} is given but the method needs only {', '.join(needs)}; leave it 'none'")
    if name == "none":
        raise UserError(f"supervision={text!r} but the method needs pairs; give e.g. supervision='pairs(k=1)'")
    if not data.grid:
        raise UserError(f"supervision={text!r} needs a grid of factors, which data {data.name!r} is not; try 'sprites'")
    return _read_k(text, options.get("k"), sum(size > 1 for size in data.factor_sizes))


def _read_k(text: str, k: object, movable: int) -> int:
    if k == "uniform" and movable > 1:
        return 0
    if isinstance(k, bool) or not isinstance(k, int) or not 1 <= k <= movable:
        also = " or 'uniform'" if movable > 1 else ""
        raise UserError(f"supervision={text!r}: k={k!r} is not accepted; give an integer from 1 to {movable}{also}")
    return k


class Sampler:
    """Draws batches with exactly the fields a method needs, observations uniform with replacement.

    supervision "pairs(k=2)" makes partners of x that differ from it in exactly two factors; "pairs(k='uniform')"
    draws that number for each pair from 1..K-1.
    """

    def __init__(self, data: Dataset, needs: tuple[str, ...], supervision: str = "none") -> None:
        for field in needs:
            check_name("batch field", field, Batch._fields)
        self.data, self.needs, self.supervision = data, tuple(needs), supervision
        self.k = read_supervision(supervision, data, self.needs)

    def __call__(self, key: Tensor, batch: int) -> Batch:
        """The batch of this key, a 0-d int64 tensor on the data's device."""
        data, fields = self.data, dict[str, Tensor]()
        index_B = random_integers(fold(key, "x"), (batch,), data.size)
        if "x" in self.needs:
            fields["x"] = data.images(index_B)
        if "second" in self.needs:
            fields["second"] = data.images(random_integers(fold(key, "second"), (batch,), data.size))
        if "labels" in self.needs:
            fields["labels"] = data.factors(index_B)
        if self.k is not None:
            fields |= self._partners(fold(key, "pair"), index_B, self.k)
        return Batch(**fields)

    def _partners(self, key: Tensor, index_B: Tensor, k: int) -> dict[str, Tensor]:
        sizes = self.data.factor_sizes
        k_B = torch.full_like(index_B, k)
        if k == 0:
            movable = sum(size > 1 for size in sizes)
            k_B = 1 + random_integers(fold(key, "k"), (index_B.shape[0],), movable - 1)
        chosen_BK = choose_factors(fold(key, "which"), k_B, sizes)
        factors_BK = change_factors(fold(key, "values"), self.data.factors(index_B), chosen_BK, sizes)
        made = {"changed": k_B}
        if "pair" in self.needs:
            made["pair"] = self.data.images(self.data.index(factors_BK))
        return {name: tensor for name, tensor in made.items() if name in self.needs}
