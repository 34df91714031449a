"""From a data set to the batches a method asks for.

A batch is a function of its key alone and made of tensor operations only, so that the engine can record the
drawing of a batch together with the training step, and draw for many runs at once. Factor sizes enter as plain
numbers and tables are made once, where the data is: a recorded step must not copy constants from the host.

Shape letters: B batch.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from unweave.contract import Batch, DataInfo
from unweave.data.dataset import Dataset
from unweave.data.supervision import pairs as pairing
from unweave.data.supervision.groups import all_numbers
from unweave.data.supervision.labels import LabelledSet, label_count, label_sizes
from unweave.data.supervision.parse import read_supervision
from unweave.data.supervision.specs import (
    Change,
    Clips,
    Groups,
    Labels,
    Listed,
    Match,
    Nothing,
    Rank,
    Share,
    Supervision,
    Triplets,
    check_needs,
)
from unweave.data.user.pair_lists import Pairs
from unweave.errors import check_choice
from unweave.ops.noise import fold, random_integers

IMAGES = ("x", "second", "pair", "labelled", "groups", "positive", "negative", "clips")  # fields that are pictures
_DRAWS: dict[type, Callable[..., Any]] = {
    Change: pairing.PairsByChange,
    Share: pairing.PairsByShare,
    Listed: pairing.PairsListed,
    Match: pairing.PairsByMatch,
    Triplets: pairing.TripletsBy,
    Rank: pairing.Ranking,
    Groups: pairing.GroupSets,
    Clips: pairing.VideoClips,
}


class Sampler:
    """Draws batches with exactly the fields a method needs, observations uniform with replacement.

    `supervision` is a text of the language in `supervision.py`. `seed` is the run's: it says which observations are
    labelled. A fleet hands over its seeds with the keys instead, one for each run.
    """

    def __init__(self, data: Dataset, needs: tuple[str, ...], supervision: str = "none", *, seed: int = 0) -> None:
        for field in needs:
            check_choice("batch field", field, Batch._fields)
        check_needs(supervision, needs, data)
        self.data, self.needs, self.supervision = data, tuple(needs), supervision
        self.want = read_supervision(supervision, data)
        self.labelled: LabelledSet | None = None
        self.draw: Any = None
        if isinstance(self.want, Labels):
            chosen = seed if self.want.seed is None else self.want.seed
            self.labelled = LabelledSet(data, self.want, torch.tensor(chosen, device=all_numbers(data).device))
        elif not isinstance(self.want, Nothing):
            self.draw = _DRAWS[type(self.want)](data, self.want)
        self.pool: Tensor | None = None if self.draw is None else self.draw.pool

    def __call__(self, key: Tensor, batch: int, seed: Tensor | None = None) -> Batch:
        """The batch of this key, a 0-d int64 tensor on the data's device."""
        plan = self.plan(key, batch, seed)
        return Batch(**{name: self._images(plan[name]) if name in IMAGES else plan[name] for name in self.needs})

    def plan(self, key: Tensor, batch: int, seed: Tensor | None = None) -> dict[str, Tensor]:
        """The batch before its pictures are fetched: the fields in `IMAGES` are numbers of observations."""
        plan = {"x": self._uniform(fold(key, "x"), batch)}
        if "second" in self.needs or "order" in self.needs:
            plan["second"] = self._uniform(fold(key, "second"), batch)
        plan["number"] = plan["x"]
        if self.labelled is not None:
            fixed = self.want.seed is not None  # type: ignore[union-attr]
            plan |= self.labelled(fold(key, "labels"), batch, None if fixed else seed)
        elif self.draw is not None:
            plan |= self.draw(fold(key, "pair"), plan)
        return plan

    def _uniform(self, key: Tensor, batch: int) -> Tensor:
        if self.pool is None:
            return random_integers(key, (batch,), self.data.size)
        return self.pool[random_integers(key, (batch,), len(self.pool))]

    def _images(self, index: Tensor) -> Tensor:
        if index.ndim == 1:
            return self.data.images(index)
        return self.data.images(index.flatten()).unflatten(0, index.shape)


def supervised_info(data: Dataset, supervision: str = "none") -> DataInfo:
    """What a method is told about the data: under supervision also how many classes, members and groups there are."""
    want = read_supervision(supervision, data)
    if isinstance(want, Labels):
        told = data.info._replace(labels=label_sizes(data, want), labelled=label_count(data, want))
        return told._replace(factors=tuple(data.factor_names[k] for k in want.factors), supervision=supervision)
    if isinstance(want, Groups):
        return data.info._replace(members=want.size, groups=pairing.GroupSets(data, want).count)
    return data.info._replace(members=want.length) if isinstance(want, Clips) else data.info


def explain(supervision: str, data: Dataset) -> str:
    """What a text of the language means on this data set, in a sentence or two."""
    want = read_supervision(supervision, data)
    sentence = _sentence(want, data)
    if isinstance(want, Share | Match | Triplets | Rank):
        pool = _DRAWS[type(want)](data, want).pool
        if pool is not None:
            sentence += f" {len(pool)} of {data.size} observations take part; the others have no partner."
    if isinstance(want, Listed):
        sentence += _listing(pairing.PairsListed(data, want).pairs)
    if isinstance(want, Groups):
        sets = pairing.GroupSets(data, want)
        left = f"; {sets.groups.groups - sets.count} smaller ones are left out" if sets.usable is not None else ""
        sentence += f" There are {sets.count} groups{left}."
    return sentence


def _listing(pairs: Pairs) -> str:
    lost = f"; {pairs.left_out} more name a picture that is not in this data set" if pairs.left_out else ""
    style = 0 if pairs.shared_L is None else int(pairs.shared_L.sum())
    told = "" if pairs.shared_L is None else f", {len(pairs.index_L2) - style} sharing content and {style} style"
    header = " Row 1 is taken for a header." if pairs.header else ""
    return f" There are {len(pairs.index_L2)} of them{told}{lost}.{header}"


def _sentence(want: Supervision, data: Dataset) -> str:
    def named(factors: tuple[int, ...]) -> str:
        return ", ".join(data.factor_names[k] for k in factors)

    match want:
        case Labels():
            ways = [f"{want.noise:.0%} of them wrong at random"] if want.noise else []
            ways += [f"in at most {want.bins} classes"] if want.bins else []
            ways += ["their order lost"] if want.permute else []
            ways += ["equally many of every class"] if want.balanced else []
            return f"Labels of {named(want.factors)} for {want.n} observations{''.join(f', {w}' for w in ways)}."
        case Change():
            count = str(want.low) if want.low == want.high else f"{want.low} to {want.high}"
            rule = " (one of them half the time, and values may stay, as disentanglement_lib has it)"
            return f"Pairs that differ in {count} of {named(want.factors)}{rule if want.rule == 'dlib' else ''}."
        case Share():
            return f"Pairs that share {named(want.by)}."
        case Listed():
            return f"Pairs as listed in {want.file}."
        case Groups():
            return f"Groups of {want.size} that share {named(want.by)}."
        case Match():
            return f"Pairs that share either {named(want.content)} or {named(want.style)}."
        case Triplets():
            return f"Triplets: one, another with the same {named(want.by)}, one with a different one."
        case Rank():
            return f"Which of two observations has more {data.factor_names[want.factor]}."
        case Clips():
            return (
                f"Clips of {want.length} frames, every {want.stride}."
                if want.stride > 1
                else (f"Clips of {want.length} frames.")
            )
    return "Images alone."
