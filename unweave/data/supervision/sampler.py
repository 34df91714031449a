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
from unweave.data.dataset import Dataset, data_device
from unweave.data.supervision import pairs as pairing
from unweave.data.supervision.labels import LabelledSet, label_count, label_sizes
from unweave.data.supervision.parse import read_supervision
from unweave.data.supervision.specs import (
    ChangedPairs,
    Clips,
    FilePairs,
    Groups,
    Labels,
    Match,
    NoSupervision,
    Rank,
    SharedPairs,
    Supervision,
    Triplets,
    check_needs,
)
from unweave.data.user.pair_lists import PairList
from unweave.errors import check_choice
from unweave.ops.noise import fold, random_integers

IMAGE_FIELDS = (
    "x",
    "x_other",
    "pair",
    "labelled",
    "groups",
    "positive",
    "negative",
    "clips",
)  # fields that are pictures
_DRAWS: dict[type, Callable[..., Any]] = {
    ChangedPairs: pairing.PairsByChange,
    SharedPairs: pairing.PairsByShare,
    FilePairs: pairing.PairsFromFile,
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
        self.spec = read_supervision(supervision, data)
        self.labelled: LabelledSet | None = None
        self.draw: Any = None
        if isinstance(self.spec, Labels):
            chosen = seed if self.spec.seed is None else self.spec.seed
            self.labelled = LabelledSet(data, self.spec, torch.tensor(chosen, device=data_device(data)))
        elif not isinstance(self.spec, NoSupervision):
            self.draw = _DRAWS[type(self.spec)](data, self.spec)
        self.pool: Tensor | None = None if self.draw is None else self.draw.pool

    def __call__(self, key: Tensor, batch: int, seed: Tensor | None = None) -> Batch:
        """The batch of this key, a 0-d int64 tensor on the data's device."""
        plan = self.plan(key, batch, seed)
        return Batch(**{name: self._images(plan[name]) if name in IMAGE_FIELDS else plan[name] for name in self.needs})

    def plan(self, key: Tensor, batch: int, seed: Tensor | None = None) -> dict[str, Tensor]:
        """The batch before its pictures are fetched: the fields in `IMAGES` are numbers of observations."""
        plan = {"x": self._uniform(fold(key, "x"), batch)}
        if "x_other" in self.needs or "order" in self.needs:
            plan["x_other"] = self._uniform(fold(key, "second"), batch)
        plan["x_index"] = plan["x"]
        if self.labelled is not None:
            fixed = self.spec.seed is not None  # type: ignore[union-attr]
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
    spec = read_supervision(supervision, data)
    if isinstance(spec, Labels):
        told = data.info._replace(labels=label_sizes(data, spec), labelled=label_count(data, spec))
        return told._replace(factors=tuple(data.factor_names[k] for k in spec.factors), supervision=supervision)
    if isinstance(spec, Groups):
        return data.info._replace(members=spec.size, groups=pairing.GroupSets(data, spec).count)
    return data.info._replace(members=spec.length) if isinstance(spec, Clips) else data.info


def explain(supervision: str, data: Dataset) -> str:
    """What a text of the language means on this data set, in a sentence or two."""
    spec = read_supervision(supervision, data)
    sentence = _sentence(spec, data)
    if isinstance(spec, SharedPairs | Match | Triplets | Rank):
        pool = _DRAWS[type(spec)](data, spec).pool
        if pool is not None:
            sentence += f" {len(pool)} of {data.size} observations take part; the others have no partner."
    if isinstance(spec, FilePairs):
        sentence += _listing(pairing.PairsFromFile(data, spec).pairs)
    if isinstance(spec, Groups):
        sets = pairing.GroupSets(data, spec)
        left = f"; {sets.groups.groups - sets.count} smaller ones are left out" if sets.usable is not None else ""
        sentence += f" There are {sets.count} groups{left}."
    return sentence


def _listing(pairs: PairList) -> str:
    lost = f"; {pairs.left_out} more name a picture that is not in this data set" if pairs.left_out else ""
    style = 0 if pairs.shared_L is None else int(pairs.shared_L.sum())
    told = "" if pairs.shared_L is None else f", {len(pairs.index_L2) - style} sharing content and {style} style"
    header = " Row 1 is taken for a header." if pairs.header else ""
    return f" There are {len(pairs.index_L2)} of them{told}{lost}.{header}"


def _sentence(spec: Supervision, data: Dataset) -> str:
    def named(factors: tuple[int, ...]) -> str:
        return ", ".join(data.factor_names[k] for k in factors)

    match spec:
        case Labels():
            ways = [f"{spec.noise:.0%} of them wrong at random"] if spec.noise else []
            ways += [f"in at most {spec.bins} classes"] if spec.bins else []
            ways += ["their order lost"] if spec.permute else []
            ways += ["equally many of every class"] if spec.balanced else []
            return f"Labels of {named(spec.factors)} for {spec.n} observations{''.join(f', {w}' for w in ways)}."
        case ChangedPairs():
            count = str(spec.low) if spec.low == spec.high else f"{spec.low} to {spec.high}"
            rule = " (one of them half the time, and values may stay, as disentanglement_lib has it)"
            return f"Pairs that differ in {count} of {named(spec.factors)}{rule if spec.rule == 'dlib' else ''}."
        case SharedPairs():
            return f"Pairs that share {named(spec.by)}."
        case FilePairs():
            return f"Pairs as listed in {spec.file}."
        case Groups():
            return f"Groups of {spec.size} that share {named(spec.by)}."
        case Match():
            return f"Pairs that share either {named(spec.content)} or {named(spec.style)}."
        case Triplets():
            return f"Triplets: one, another with the same {named(spec.by)}, one with a different one."
        case Rank():
            return f"Which of two observations has more {data.factor_names[spec.factor]}."
        case Clips():
            return (
                f"Clips of {spec.length} frames, every {spec.stride}."
                if spec.stride > 1
                else (f"Clips of {spec.length} frames.")
            )
    return "Images alone."
