"""Random permutations and draws without replacement as functions of a key, in tensor arithmetic.

Shape letters: B batch, S numbers drawn per row, M numbers to be ranked.
"""

import torch
from torch import Tensor

from unweave.ops.noise import fold, random_bits, scale_bits

_ROUNDS = 24


def permuted(key: Tensor, position: Tensor, size: Tensor | int) -> Tensor:
    """Apply a pseudo-random permutation of 0..size-1 to positions; key and size may differ between them.

    The swap-or-not shuffle (Hoang, Morris & Rogaway 2012): every round pairs each position with another one, and a hash
    of the pair decides whether they are swapped. It is a bijection for every size and needs no table. The hash of a
    round is the sign of a random line, which is pairwise independent.
    """
    turns = fold(key[..., None], torch.arange(3 * _ROUNDS, device=key.device))
    sums, slopes, offsets = turns.split(_ROUNDS, dim=-1)
    sums = scale_bits(sums, size[..., None] if isinstance(size, Tensor) else size)
    for total, slope, offset in zip(*(part.unbind(-1) for part in (sums, slopes | 1, offsets)), strict=True):
        partner = (total - position) % size
        swap = torch.maximum(position, partner) * slope + offset < 0
        position = torch.where(swap, partner, position)
    return position


def ranks(draw_BM: Tensor) -> Tensor:
    """Return the rank of every number in its row; equal numbers are ranked by position.

    All pairs are compared, which unlike sorting gives the same result on every device.
    """
    count = draw_BM.shape[1]
    mine, other = draw_BM[:, :, None], draw_BM[:, None, :]
    earlier_MM = torch.ones(count, count, dtype=torch.bool, device=draw_BM.device).tril(-1)
    return ((other < mine) | ((other == mine) & earlier_MM)).sum(-1)


def sample_without_replacement(key: Tensor, size_B: Tensor, count: int) -> Tensor:
    """Return `count` different numbers of 0..size-1 for each row [B, S], in random order; size at least `count`.

    Floyd's algorithm: the range of each draw is one number larger than the last, and that number replaces a repeated
    one. All sets are equally likely but not all orders, so the order is drawn too.
    """
    bits_BS = random_bits(fold(key, "draws"), (size_B.shape[0], count))
    chosen: list[Tensor] = []
    for s in range(count):
        last = size_B - (count - s)
        drawn = scale_bits(bits_BS[:, s], last + 1)
        taken = torch.zeros_like(drawn, dtype=torch.bool)
        for earlier in chosen:
            taken = taken | (earlier == drawn)
        chosen.append(torch.where(taken, last, drawn))
    order_BS = ranks(random_bits(fold(key, "order"), (size_B.shape[0], count)))
    return torch.stack(chosen, dim=1).gather(1, order_BS)
