"""The F statistic of two classes, for each coordinate.

Shape letters: B classes, G members of each, Z coordinates, P pairs of classes.
"""

from typing import NamedTuple

import torch
from torch import Tensor

from unweave.ops.beta import betainc

_SMALLEST = 1e-37, 1e-5  # of both shares: below, the logarithm or its derivative overflows
_EPS = 1e-30  # for classes whose members are all equal


class Pairs(NamedTuple):
    """All pairs of classes, and the shares of their squared deviations between and within classes; they sum to 1."""

    between_PZ: Tensor  # F / (F + 2G - 2)
    within_PZ: Tensor  # (2G - 2) / (F + 2G - 2)
    first_P: Tensor  # indices of the classes
    second_P: Tensor


def class_pairs(z_BGZ: Tensor) -> Pairs:
    """Return the deviations between and within all pairs of classes."""
    classes, members, _ = z_BGZ.shape
    mean_BZ = z_BGZ.mean(1)
    spread_BZ = (z_BGZ - mean_BZ[:, None]).square().sum(1)
    i_P, j_P = torch.triu_indices(classes, classes, 1, device=z_BGZ.device).unbind()
    between_PZ = 0.5 * members * (mean_BZ[i_P] - mean_BZ[j_P]).square()
    within_PZ = spread_BZ[i_P] + spread_BZ[j_P]
    total_PZ = between_PZ + within_PZ + _EPS
    return Pairs(between_PZ / total_PZ, within_PZ / total_PZ, i_P, j_P)


def best_probabilities(pairs: Pairs, members: int, d: int) -> Tensor:
    """Return P(F' < F) in the d coordinates where it is largest [P, d]; F' has 1 and 2G - 2 degrees of freedom.

    The largest shares have the largest probabilities, and still differ if the probabilities all round to one.
    """
    between_Pd, best_Pd = pairs.between_PZ.topk(d, dim=1)
    within_Pd = pairs.within_PZ.detach().gather(1, best_Pd)
    between_Pd = between_Pd.clamp(_SMALLEST[0], 1.0 - _SMALLEST[1])
    return betainc(0.5, members - 1.0, between_Pd, within_Pd.clamp(_SMALLEST[1], 1.0))
