"""Random orders and draws without repetition as functions of a key, in tensor arithmetic without tables.

Shape letters: B batch, S members drawn in a row, M numbers to be ranked.
"""

from __future__ import annotations

import torch
from torch import Tensor

from unweave.ops.noise import fold, random_bits

_ROUNDS = 24
_LOW = 0xFFFFFFFF


def scaled(bits: Tensor, high: Tensor | int) -> Tensor:
    """Random bits as an integer in 0..high-1 (high up to 2^31), by their upper half."""
    return (((bits >> 32) & _LOW) * high) >> 32


def permuted(key: Tensor, place: Tensor, size: Tensor | int) -> Tensor:
    """Where a pseudo-random permutation of 0..size-1 puts these places; key and size may differ between them.

    The swap-or-not shuffle (Hoang, Morris & Rogaway 2012): every round pairs each place with another one and a
    hash of the pair says whether the two change places. It is one to one for every size, so that the first n
    places are n different numbers, and nobody has to keep a table of them. The hash of a round is the sign of a
    random line, which is independent for any two pairs.
    """
    turns = fold(key[..., None], torch.arange(3 * _ROUNDS, device=key.device))
    sums, slopes, offsets = turns.split(_ROUNDS, dim=-1)
    sums = scaled(sums, size[..., None] if isinstance(size, Tensor) else size)
    for total, slope, offset in zip(*(part.unbind(-1) for part in (sums, slopes | 1, offsets)), strict=True):
        partner = (total - place) % size
        swap = torch.maximum(place, partner) * slope + offset < 0
        place = torch.where(swap, partner, place)
    return place


def ranks(draw_BM: Tensor) -> Tensor:
    """The rank of every number in its row, equal ones by position.

    All pairs are compared: rows are short, and unlike a sort this is the same arithmetic on every device.
    """
    count = draw_BM.shape[1]
    mine, other = draw_BM[:, :, None], draw_BM[:, None, :]
    earlier_MM = torch.ones(count, count, dtype=torch.bool, device=draw_BM.device).tril(-1)
    return ((other < mine) | ((other == mine) & earlier_MM)).sum(-1)


def without_repetition(key: Tensor, size_B: Tensor, count: int) -> Tensor:
    """For each row `count` different numbers of 0..size-1 [B, S] in random order; size at least `count`.

    Floyd's algorithm: the s-th draw goes one number further than the last, and takes that number when what it drew
    is taken. Every set is equally likely but not every order, so the order is drawn as well.
    """
    bits_BS = random_bits(fold(key, "draws"), (size_B.shape[0], count))
    chosen: list[Tensor] = []
    for s in range(count):
        last = size_B - (count - s)
        drawn = scaled(bits_BS[:, s], last + 1)
        taken = torch.zeros_like(drawn, dtype=torch.bool)
        for earlier in chosen:
            taken = taken | (earlier == drawn)
        chosen.append(torch.where(taken, last, drawn))
    order_BS = ranks(random_bits(fold(key, "order"), (size_B.shape[0], count)))
    return torch.stack(chosen, dim=1).gather(1, order_BS)
