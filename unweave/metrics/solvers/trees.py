"""Grow many regression trees of depth 3 together, one for each column of a matrix of residuals.

Each split chooses the code and the value that reduce the squared residuals of a node most. Candidate splits are first
compared at bin edges: the sums of residuals per bin are sums of rows of one matrix, which is fast on a CPU and on a
GPU. Then the rows around the best bin edge, and around the edges of the node itself (where a single row makes the
largest difference), are tried one by one.

The nodes of one level are numbered by the splits that lead to them: add 1 if left at the first split, 2 if left at
the second.

Shape letters: N rows, D codes, B bins, C columns (trees), S nodes of one level, G cells (S times C, the nodes
of all trees), Q positions examined per cell, W rows examined at each.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import embedding_bag

from unweave.metrics.inputs import Floats, Indices

BINS = 128
_BAG = 4095  # rows summed at once: two counts up to this fit into one float32 without rounding
_PIECE = 80_000  # entries per operation on a CPU; several such matrices fit into the cache of a core
_NEAR = 32  # rows tried on each side of a position
_TIE = 1e-5  # splits with a smaller relative difference of gain are ties, which are broken at random


class Sorted(NamedTuple):
    """The train rows sorted by each code, and the bins of that order."""

    negative_rank: Tensor  # [N, D] float, minus the rank of a value among the distinct values of the code
    rows: Tensor  # [D, N], the rows in increasing order
    order: Tensor  # [D, N], their ranks
    ends: Tensor  # [D, B], the position in the order of the last row of each bin
    starts: Tensor  # where each bag starts in the flattened `rows`: a bin, or a part of one of at most _BAG rows
    parts: Tensor | None  # where the bags of each bin start, if some bin has several


def bin_end_positions(rows: int, bins: int) -> Indices:
    """Return the positions of bin ends among sorted rows: wide bins in the middle, single rows at both ends.

    The gain of a split that separates few rows depends on each of them, so a bin near an end contains a fixed share of
    the rows beyond it. Number of bins up to position p: p / width + log(1 + growth p) / growth.
    """
    growth = 3 * np.log(rows) / bins
    p = np.arange(rows // 2 + 1)
    narrow = np.log1p(growth * p) / growth
    number = p * max(bins / 2 - narrow[-1], bins / 8) / p[-1] + narrow
    half = np.flatnonzero(np.diff(np.floor(number)))
    return np.unique(np.concatenate([half, rows - 2 - half]))


def bin_ends(order_N: Indices, bins: int) -> Indices:
    """Return the last positions of the bins of one code: of each value, or of values near `bin_end_positions`."""
    last = np.flatnonzero(np.diff(order_N, append=-1))  # of each value
    if len(last) > bins:
        last = np.unique(
            last[np.searchsorted(last, np.append(bin_end_positions(len(order_N), bins), len(order_N) - 1))]
        )
    return last


def value_ranks(train_ND: Floats, codes_ND: Floats) -> Indices:
    """Return the rank of the equal or nearest value among the distinct values of each code in `train` [N, D]."""
    ranks = []
    for train_N, code_N in zip(train_ND.T, codes_ND.T):
        values = np.unique(train_N)
        ranks.append(np.searchsorted((values[:-1] + values[1:]) / 2, code_N))
    return np.stack(ranks, axis=1)


def sort_codes(codes_ND: Floats, *, bins: int, device: torch.device) -> Sorted:
    ranks_ND = value_ranks(codes_ND, codes_ND)
    rows_DN = np.argsort(ranks_ND.T, axis=1, kind="stable")
    order_DN = np.take_along_axis(ranks_ND.T, rows_DN, axis=1)
    found = [bin_ends(order_N, bins) for order_N in order_DN]
    ends_DB = np.full((len(found), max(map(len, found))), len(codes_ND) - 1)
    for row, ends in zip(ends_DB, found):
        row[: len(ends)] = ends
    count = np.diff(ends_DB, axis=1, prepend=-1).ravel()  # 0 in the padding of shorter lists
    pieces = np.maximum(1, -(-count // _BAG))
    first = np.cumsum(pieces) - pieces
    starts = np.repeat(np.cumsum(count) - count, pieces) + _BAG * (np.arange(pieces.sum()) - np.repeat(first, pieces))

    def tensor(array: Indices, dtype: torch.dtype = torch.int32) -> Tensor:
        return torch.tensor(array, dtype=dtype, device=device)

    parts = tensor(first) if pieces.max() > 1 else None
    return Sorted(
        -tensor(ranks_ND, torch.float32), tensor(rows_DN), tensor(order_DN), tensor(ends_DB, torch.int64),
        tensor(starts), parts,
    )  # fmt: skip


def bag_sums(codes: Sorted, values_NG: Tensor) -> Tensor:
    """Return the sum of the values over the rows of each bag."""
    return embedding_bag(codes.rows.view(-1), values_NG, codes.starts, mode="sum")


def sums_below(codes: Sorted, sums: Tensor) -> Tensor:
    """Return the cumulative sums over the bins of each code [D, B, G], from the sums of the bags."""
    if codes.parts is not None:
        sums = embedding_bag(torch.arange(len(sums), device=sums.device).int(), sums, codes.parts, mode="sum")
    return sums.view(*codes.ends.shape, -1).cumsum(1)


def gather_entries(table: Tensor, entry: Tensor) -> Tensor:
    """Return entries of a flattened matrix; three times as fast on a CPU as table.view(-1)[entry]."""
    return table.view(-1).index_select(0, entry.flatten()).view(entry.shape)


class Residuals(NamedTuple):
    """Targets of the trees: `target - prediction` if `present` is 1 (everywhere if it is None), all [N, C]."""

    target: Tensor
    prediction: Tensor
    present: Tensor | None

    def at(self, entry: Tensor, member: Tensor) -> Tensor:
        """Return the residuals of some entries of the flattened matrix, 0 for those that are not members."""
        return gather_entries(self.target, entry).sub_(gather_entries(self.prediction, entry)).mul_(member)

    def columns(self, part: slice) -> tuple[Tensor, Tensor | None]:
        residual = self.target[:, part] - self.prediction[:, part]
        if self.present is None:
            return residual, None
        present = self.present[:, part].contiguous()
        return residual.mul_(present), present


class Block(NamedTuple):
    """Some of the trees, few enough that their columns stay in the cache of a core."""

    part: slice  # which columns
    residual: Tensor  # [N, C]
    present: Tensor | None
    lefts: list[Tensor]  # for each level so far 1 if a row went left, else 0


class Level(NamedTuple):
    """The best splits of the nodes of one level [G]: rows with a rank in `code` of at most `rank` go left."""

    code: Tensor
    rank: Tensor
    position: Tensor  # of the last row that goes left, in the order of the code
    gain: Tensor  # decrease of the sum of squared residuals


class SplitPosition(NamedTuple):
    """A position in the order of a code, with the residuals and rows of each node before it [G]."""

    code: Tensor
    position: Tensor
    residual: Tensor  # sum
    rows: Tensor  # number


def split_gains(sums: Tensor, counts: Tensor, total: Tensor, rows: Tensor) -> Tensor:
    """Return the gain of splits with `sums` and `counts` on one side."""
    product = (rows - counts).mul_(counts).clamp_min_(0.5)  # if a side has no rows, the gain is 0
    difference = torch.addcmul(sums, counts, total / rows.clamp_min(1), value=-1)
    return difference.square_().mul_(rows).div_(product)


def best_bins(sums_DBG: Tensor, counts_DBG: Tensor, ends_DB: Tensor, noise_DG: Tensor) -> SplitPosition:
    """Return the best bin end to split each node at; `noise` breaks ties between codes."""
    gain_DBG = split_gains(sums_DBG, counts_DBG, sums_DBG[:, -1:], counts_DBG[:, -1:])
    best_DG = gain_DBG.amax(1)
    tied = best_DG >= best_DG.amax(0) * (1 - _TIE)
    code = (noise_DG * tied).argmax(0)
    cell = torch.arange(len(code), device=code.device)
    bin = gain_DBG[code, :, cell].argmax(1)
    return SplitPosition(code, ends_DB[code, bin], sums_DBG[code, bin, cell], counts_DBG[code, bin, cell])


def refine_splits(
    codes: Sorted,
    residuals: Residuals,
    levels: list[Level],
    positions: list[SplitPosition],
    total: Tensor,
    rows: Tensor,
) -> Level:
    """Return the best split of each node among the rows around some positions."""
    code, position, before, count = (torch.stack(part) for part in zip(*positions))  # [Q, G]
    last, columns = codes.rows.shape[1] - 1, residuals.prediction.shape[1]
    at = position[..., None] + torch.arange(1 - _NEAR, _NEAR + 2, device=code.device)  # [Q, G, W + 1]
    inside = (at >= 0) & (at <= last)
    flat = at.clamp(0, last).add_(code[..., None] * (last + 1))
    ranks, row = gather_entries(codes.order, flat), gather_entries(codes.rows, flat[..., :-1]).long()
    member = in_node(codes.negative_rank, levels, row, columns) & inside[..., :-1]
    entry = row.mul_(columns).add_(torch.arange(len(rows), device=code.device)[:, None] % columns)
    if residuals.present is not None:
        member &= gather_entries(residuals.present, entry) > 0
    sums_QGW, counts_QGW = residuals.at(entry, member).cumsum(-1), member.float().cumsum(-1)
    centre = slice(_NEAR - 1, _NEAR)
    sums_QGW += before[..., None] - sums_QGW[..., centre]
    counts_QGW += count[..., None] - counts_QGW[..., centre]
    gain = split_gains(sums_QGW, counts_QGW, total[:, None], rows[:, None])
    gain *= (ranks[..., 1:] > ranks[..., :-1]) & inside[..., 1:]
    return _choose(code, at, ranks, counts_QGW, gain)


def in_node(negative_rank_ND: Tensor, levels: list[Level], row_QGW: Tensor, columns: int) -> Tensor:
    """Return True for rows that the splits above lead into the node of their cell [Q, G, W]."""
    member = torch.ones_like(row_QGW, dtype=torch.bool)
    for split, is_left in above(levels, row_QGW.shape[1], columns):
        negative_rank = gather_entries(negative_rank_ND, row_QGW * negative_rank_ND.shape[1] + split.code[:, None])
        member &= (negative_rank.add_(split.rank[:, None]) >= 0) == is_left[:, None]
    return member


def _choose(code: Tensor, at: Tensor, ranks: Tensor, counts: Tensor, gain: Tensor) -> Level:
    """Return the best of the examined positions; the threshold is halfway to the next row of the node."""
    best, step = gain.max(-1)  # [Q, G]
    # The first position was chosen at random among ties and is kept unless another one is clearly better.
    best[1:] *= 1 - _TIE
    best, q = best.max(0)
    cell = torch.arange(len(q), device=q.device)
    step, counts, ranks = step[q, cell], counts[q, cell], ranks[q, cell]
    left = counts[cell, step][:, None]
    first = (counts < left).sum(1)
    after = first + (counts == left).sum(1)
    limit = (ranks[cell, first] + ranks[cell, after]) // 2
    return Level(code[q, cell], limit, at[q, cell, step], best)


def above(levels: list[Level], cells: int, columns: int) -> Iterator[tuple[Level, Tensor]]:
    """Yield, for each level above, the splits that lead to the nodes of the next level, and True for left [G]."""
    for depth, level in enumerate(levels):
        cell = torch.arange(cells, device=level.code.device)
        node = cell // columns
        split = node % 2**depth * columns + cell % columns
        yield Level(*(values[split] for values in level)), node // 2**depth % 2 == 1


def row_pieces(values_NC: Tensor) -> list[slice]:
    """Return slices of the rows, several of which fit into the cache of a core; all rows at once on a GPU."""
    rows, columns = values_NC.shape
    length = rows if values_NC.is_cuda else max(1, _PIECE // columns)
    return [slice(start, start + length) for start in range(0, rows, length)]


def goes_left(negative_rank_ND: Tensor, level: Level, part: slice, lefts: list[Tensor]) -> Tensor:
    """Return 1 if a row goes left in its node, else 0 [N, C]; `lefts` has the same of the levels above."""
    codes = level.code.view(2 ** len(lefts), -1)[:, part]
    limits = (level.rank.to(negative_rank_ND.dtype) + 1).view(2 ** len(lefts), -1)[:, part]
    found_NC = negative_rank_ND.new_empty(len(negative_rank_ND), codes.shape[1])
    for rows in row_pieces(found_NC):
        negative_rank = negative_rank_ND[rows]
        # Ranks are integers, so limit + 1 - rank, clamped to 0..1, is a comparison, which is faster on a CPU.
        masks = [negative_rank.index_select(1, code).add_(limit).clamp_(0, 1) for code, limit in zip(codes, limits)]
        for left in lefts:
            masks = [at_right.lerp_(at_left, left[rows]) for at_right, at_left in zip(masks[::2], masks[1::2])]
        found_NC[rows] = masks[0]
    return found_NC


def left_sums(codes: Sorted, block: Block) -> tuple[Tensor, Tensor]:
    """Return the residuals and the rows that go left, summed over the bags, for each of the 1 or 2 nodes [.., G]."""
    left = block.lefts[-1] if block.present is None else block.lefts[-1] * block.present
    if len(block.lefts) == 1:
        return bag_sums(codes, block.residual * left), bag_sums(codes, left)
    at_right, at_left, both = (torch.empty_like(left) for _ in range(3))
    for rows in row_pieces(left):
        moved, first = block.residual[rows] * left[rows], block.lefts[0][rows]
        torch.mul(moved, first, out=at_left[rows])
        torch.sub(moved, at_left[rows], out=at_right[rows])
        torch.mul(left[rows], first, out=both[rows]).mul_(_BAG).add_(left[rows])  # two counts in one number
    counts = bag_sums(codes, both)
    count_left = (counts / (_BAG + 1)).floor_()
    sums = torch.cat([bag_sums(codes, at_right), bag_sums(codes, at_left)], 1)
    return sums, torch.cat([counts - count_left * (_BAG + 1), count_left], 1)


def next_level(codes: Sorted, blocks: list[Block], sums_DBG: Tensor, counts_DBG: Tensor) -> tuple[Tensor, Tensor]:
    """Return the cumulative residuals and rows of each bin in the nodes below the last splits."""
    nodes = 2 ** (len(blocks[0].lefts) - 1)
    found = zip(*(left_sums(codes, block) for block in blocks))
    joined = [torch.cat([part.unflatten(1, (nodes, -1)) for part in parts], 2).flatten(1) for parts in found]
    lefts = [sums_below(codes, values) for values in joined]
    sums, counts = (torch.cat([whole - left, left], -1) for whole, left in zip((sums_DBG, counts_DBG), lefts))
    return sums, counts


def grow(
    codes: Sorted, residuals: Residuals, counts_DBC: Tensor, noise: Tensor, *, width: int
) -> tuple[list[Level], list[Block]]:
    """Grow a tree of depth 3 per column; return the splits, and blocks of `width` columns with the paths of rows.

    `counts_DBC` are the rows present below each bin, the same for all trees; `noise` is [D, 7 C].
    """
    columns = noise.shape[1] // 7
    parts = [slice(start, start + width) for start in range(0, columns, width)]
    blocks = [Block(part, *residuals.columns(part), []) for part in parts]
    sums = sums_below(codes, torch.cat([bag_sums(codes, block.residual) for block in blocks], 1))
    counts = counts_DBC
    levels: list[Level] = []
    while True:
        total, rows = sums[0, -1], counts[0, -1]
        seen = (2 ** len(levels) - 1) * columns
        best = best_bins(sums, counts, codes.ends, noise[:, seen : seen + len(rows)])
        splits = above(levels, len(rows), columns)
        # The edges of the nodes: positions of the splits above, with all or no rows of a node before them.
        positions = [
            best,
            *(SplitPosition(s.code, s.position, total * is_left, rows * is_left) for s, is_left in splits),
        ]
        levels.append(refine_splits(codes, residuals, levels, positions, total, rows))
        for block in blocks:
            block.lefts.append(goes_left(codes.negative_rank, levels[-1], block.part, block.lefts))
        if len(levels) == 3:
            return levels, blocks
        sums, counts = next_level(codes, blocks, sums, counts)


def tree_paths(negative_rank_ND: Tensor, levels: list[Level], part: slice) -> list[Tensor]:
    """Return for each level 1 if a row goes left, else 0 [N, C], in some of the columns."""
    lefts: list[Tensor] = []
    for level in levels:
        lefts.append(goes_left(negative_rank_ND, level, part, lefts))
    return lefts
