"""Drawing partners: pairs that differ in few factors, share some or are listed, triplets, order, groups, clips.

Everything here turns a key and the observations x into numbers of other observations, by tensor arithmetic.
`pool` holds the observations that x may be where not all of them have what it takes, else it is None.

Shape letters: N observations, B batch, K factors, M factors that may change, S members of a group or frames.
"""

from __future__ import annotations

import torch
from torch import Tensor

from unweave.data.dataset import Dataset, all_indices, data_device
from unweave.data.supervision.groups import Grouping, TableGroups, group_by, other_member
from unweave.data.supervision.specs import ChangedPairs, Clips, FilePairs, Groups, Match, Rank, SharedPairs, Triplets
from unweave.data.user.pair_lists import read_pairs
from unweave.errors import UserError
from unweave.ops.noise import fold, random_bits, random_integers
from unweave.ops.shuffle import permuted, ranks, without_repetition

Fields = dict[str, Tensor]


def choose_factors(key: Tensor, k_B: Tensor, factors: tuple[int, ...], total: int) -> Tensor:
    """For each row a uniformly drawn set of k of these factors, as booleans over all of them [B, K]."""
    rank_BM = ranks(random_bits(key, (k_B.shape[0], len(factors))))
    chosen = dict(zip(factors, (rank_BM < k_B[:, None]).unbind(1), strict=True))
    never = torch.zeros_like(k_B, dtype=torch.bool)
    return torch.stack([chosen.get(i, never) for i in range(total)], dim=1)


def change_factors(key: Tensor, factors_BK: Tensor, chosen_BK: Tensor, sizes: tuple[int, ...]) -> Tensor:
    """The chosen factors replaced by a uniformly drawn other value, the rest kept."""
    columns = []
    for i, size in enumerate(sizes):
        old = factors_BK[:, i]
        step = 1 + random_integers(fold(key, i), (factors_BK.shape[0],), size - 1)  # 1..size-1: never back to old
        columns.append(torch.where(chosen_BK[:, i], (old + step) % size, old))
    return torch.stack(columns, dim=1)


def redraw_factors(key: Tensor, factors_BK: Tensor, chosen_BK: Tensor, sizes: tuple[int, ...]) -> Tensor:
    """The chosen factors replaced by any uniformly drawn value, the old one included."""
    columns = []
    for i, size in enumerate(sizes):
        new = random_integers(fold(key, i), (factors_BK.shape[0],), size)
        columns.append(torch.where(chosen_BK[:, i], new, factors_BK[:, i]))
    return torch.stack(columns, dim=1)


class PairsByChange:
    """Partners that differ in k of some factors (Locatello et al. 2020), k fixed or uniform in a range.

    Rule "dlib" is what disentanglement_lib does instead: one factor or k of them, with equal odds, get a value that
    may be the old one. `changed` is then how many were drawn anew.
    """

    pool = None

    def __init__(self, data: Dataset, spec: ChangedPairs) -> None:
        self.data, self.spec = data, spec

    def __call__(self, key: Tensor, plan: Fields) -> Fields:
        data, spec, index_B = self.data, self.spec, plan["x"]
        k_B = torch.full_like(index_B, spec.low)
        if spec.high > spec.low:
            k_B = spec.low + random_integers(fold(key, "k"), (index_B.shape[0],), spec.high - spec.low + 1)
        if spec.rule == "dlib":
            k_B = 1 + (random_bits(fold(key, "one"), (index_B.shape[0],)) & 1) * (k_B - 1)
        chosen_BK = choose_factors(fold(key, "which"), k_B, spec.factors, len(data.factor_sizes))
        draw = redraw_factors if spec.rule == "dlib" else change_factors
        factors_BK = draw(fold(key, "values"), data.factors(index_B), chosen_BK, data.factor_sizes)
        return {"pair": data.index(factors_BK), "changed": k_B}


class PairsByShare:
    """Partners that share some factors, uniform among the other observations that do."""

    def __init__(self, data: Dataset, spec: SharedPairs) -> None:
        self.data, self.groups = data, group_by(data, spec.by)
        self.pool = _pool(data, [self.groups], 2)

    def __call__(self, key: Tensor, plan: Fields) -> Fields:
        index_B = plan["x"]
        pair_B = other_member(self.groups, random_bits(key, (index_B.shape[0],)), index_B)
        differs_BK = self.data.factors(index_B) != self.data.factors(pair_B)
        return {"pair": pair_B, "changed": differs_BK.sum(1)}


class PairsFromFile:
    """The pairs of a file, all equally likely and either picture of one as x."""

    pool = None

    def __init__(self, data: Dataset, spec: FilePairs) -> None:
        self.pairs = read_pairs(spec.file, data, spec.fingerprint)
        device = data_device(data)
        self.index_L2 = self.pairs.index_L2.to(device)
        self.shared_L = None if self.pairs.shared_L is None else self.pairs.shared_L.to(device)

    def __call__(self, key: Tensor, plan: Fields) -> Fields:
        row_B, x_B, pair_B = self._drawn(key, plan["x"].shape[0])
        fields = {"x": x_B, "x_index": x_B, "pair": pair_B}
        fields |= {} if self.shared_L is None else {"shared": self.shared_L[row_B]}
        return fields | ({"x_other": self._drawn(fold(key, "second"), len(x_B))[1]} if "x_other" in plan else {})

    def _drawn(self, key: Tensor, batch: int) -> tuple[Tensor, Tensor, Tensor]:
        row_B = random_integers(fold(key, "row"), (batch,), len(self.index_L2))
        side_B = random_bits(fold(key, "side"), (batch,)) & 1
        return row_B, self.index_L2[row_B, side_B], self.index_L2[row_B, 1 - side_B]


class PairsByMatch:
    """Partners that share either the content or the style, with equal odds (Tran et al. 2021)."""

    def __init__(self, data: Dataset, spec: Match) -> None:
        self.content, self.style = group_by(data, spec.content), group_by(data, spec.style)
        self.pool = _pool(data, [self.content, self.style], 2)

    def __call__(self, key: Tensor, plan: Fields) -> Fields:
        index_B = plan["x"]
        bits_B = random_bits(fold(key, "member"), (index_B.shape[0],))
        shared_B = random_bits(fold(key, "shared"), (index_B.shape[0],)) & 1
        content_B, style_B = (other_member(groups, bits_B, index_B) for groups in (self.content, self.style))
        return {"pair": torch.where(shared_B == 0, content_B, style_B), "shared": shared_B}


class TripletsBy:
    """Another observation that shares some factors, and one that differs in at least one of them."""

    def __init__(self, data: Dataset, spec: Triplets) -> None:
        self.groups = group_by(data, spec.by)
        if self.groups.groups < 2:
            names = [data.factor_names[k] for k in spec.by]
            raise UserError(f"triplets(by={names}) needs observations that differ in it; data {data.name!r} has none")
        self.pool = _pool(data, [self.groups], 2)

    def __call__(self, key: Tensor, plan: Fields) -> Fields:
        index_B = plan["x"]
        near, far = (random_bits(fold(key, name), (index_B.shape[0],)) for name in ("positive", "negative"))
        group_B, _ = self.groups.place(index_B)
        return {"positive": other_member(self.groups, near, index_B), "negative": self.groups.outside(far, group_B)}


class Ranking:
    """Which of x and an independent second observation has more of a factor."""

    def __init__(self, data: Dataset, spec: Rank) -> None:
        self.data, self.spec = data, spec
        self.pool = _pool(data, [group_by(data, (spec.factor,))], 1)

    def __call__(self, key: Tensor, plan: Fields) -> Fields:
        # by value, not by class: a continuous factor has more values than classes
        mine_B, other_B = (self.data.values(plan[field])[:, self.spec.factor] for field in ("x", "x_other"))
        return {"order": (mine_B - other_B).sign().long()}


class GroupSets:
    """Sets of different observations that share some factors, every group of sufficient size equally likely."""

    pool = None

    def __init__(self, data: Dataset, spec: Groups) -> None:
        self.spec, self.groups = spec, group_by(data, spec.by)
        names = [data.factor_names[k] for k in spec.by]
        if self.groups.members < spec.size:
            raise UserError(
                f"groups(by={names}, size={spec.size}): the largest group of data {data.name!r} has "
                f"{self.groups.members} observations; give a smaller size"
            )
        self.names, self.usable = names, self._usable()
        self.count = self.groups.groups if self.usable is None else len(self.usable)

    def _usable(self) -> Tensor | None:
        """The numbers of the groups that are large enough, if not all of them are."""
        if not isinstance(self.groups, TableGroups):
            return None
        enough_P = self.groups.counts_P >= self.spec.size
        return None if bool(enough_P.all()) else enough_P.nonzero()[:, 0]

    def __call__(self, key: Tensor, plan: Fields) -> Fields:
        batch = plan["x"].shape[0]
        if not self.spec.distinct:
            number_B = random_integers(fold(key, "group"), (batch,), self.count)
        elif batch <= self.count:
            number_B = permuted(fold(key, "group"), torch.arange(batch, device=key.device), self.count)
        else:
            raise UserError(
                f"batch {batch} is too large for groups(by={self.names}, distinct=True); there are {self.count} groups"
            )
        group_B = number_B if self.usable is None else self.usable[number_B]
        rank_BS = without_repetition(fold(key, "members"), self.groups.count(group_B), self.spec.size)
        return {"groups": self.groups.at(group_B[:, None].expand_as(rank_BS), rank_BS), "group_id": number_B}


class VideoClips:
    """Frames of one video each, from a uniformly drawn first one."""

    pool = None

    def __init__(self, data: Dataset, spec: Clips) -> None:
        self.spec, self.frames = spec, data.frames
        self.videos = data.size // self.frames
        self.starts = self.frames - (spec.length - 1) * spec.stride

    def __call__(self, key: Tensor, plan: Fields) -> Fields:
        batch, spec = plan["x"].shape[0], self.spec
        video_B = random_integers(fold(key, "video"), (batch,), self.videos)
        start_B = random_integers(fold(key, "start"), (batch,), self.starts)
        frame_S = torch.arange(spec.length, device=key.device) * spec.stride
        return {"clips": (video_B * self.frames + start_B)[:, None] + frame_S}


def _pool(data: Dataset, groupings: list[Grouping], size: int) -> Tensor | None:
    """The observations whose groups have at least this size, if not all are such."""
    enough_N = torch.ones_like(all_indices(data), dtype=torch.bool)
    for groups in groupings:
        if isinstance(groups, TableGroups):
            enough_N = enough_N & groups.crowded(size)
        elif groups.members < size:
            enough_N = torch.zeros_like(enough_N)
    if not bool(enough_N.any()):
        raise UserError(f"no observation of data {data.name!r} has a partner that shares what is asked for")
    return None if bool(enough_N.all()) else enough_N.nonzero()[:, 0]
