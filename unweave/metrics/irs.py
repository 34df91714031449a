"""The interventional robustness score: does a code stay put when only other factors are changed?

Shape letters: N rows, D codes, K factors, V values of one factor, n rows that share a value.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from unweave.errors import UserError
from unweave.metrics.histogram_mi import device_of
from unweave.metrics.inputs import (
    BINS,
    Array,
    FactorTypes,
    Floats,
    Indices,
    MetricInputs,
    bin_edges,
    check_at_least,
    classes,
    varying_factors,
)
from unweave.metrics.inputs import read_table as _read_table
from unweave.metrics.metric import Metric
from unweave.metrics.parallel import is_cpu

_GATHERED = 8_000_000  # numbers gathered at once: 64 MB, whatever the size of the table


class Robustness(NamedTuple):
    """What the score is made of, over the codes that are not constant."""

    codes: Indices  # which columns these are [D]
    matrix: Floats  # 1 - the mean worst deviation within a value of factor k, over the code's largest [D, K]
    deviations: Floats  # the largest deviation of each code from its mean [D]


def irs_score(
    codes: Array,
    factors: Array,
    *,
    quantile: float = 0.99,
    factor_bins: int | None = BINS,
    factor_types: FactorTypes = None,
    device: str | None = None,
) -> float:
    """Interventional robustness score (Suter et al. 2019, section 3, https://arxiv.org/abs/1811.00007), in 0..1.

    For each code, the factor that pins it down best: how far the code strays from its mean while that factor
    keeps a value, against how far it strays at all. Codes count by how far they stray; constant ones not at all.
    Follows disentanglement_lib: the 0.99 quantile of the deviations in place of the paper's maximum (1.0),
    and factors with more values than `factor_bins` are binned (None: used as they are).

    >>> factors = [[0, 0], [0, 1], [1, 0], [1, 1]]
    >>> irs_score(factors, factors)
    1.0
    """
    table = _read_table(codes, factors, factor_types=factor_types)
    found = robustness(table, quantile=quantile, factor_bins=factor_bins, device=device_of(codes, device))
    if not len(found.codes):
        return 0.0
    best_D = found.matrix.max(axis=1)
    return float(np.clip(np.average(best_D, weights=found.deviations), 0.0, 1.0))


def robustness(
    table: MetricInputs,
    *,
    quantile: float = 0.99,
    factor_bins: int | None = BINS,
    device: torch.device | str | None = None,
) -> Robustness:
    """The robustness of every code that is not constant against every factor that varies."""
    if not 0.0 <= quantile <= 1.0:
        raise UserError(f"quantile: is {quantile}; accepted is 0 to 1")
    check_at_least("factor_bins", 1 if factor_bins is None else factor_bins, 1)
    chosen = varying_factors(table)
    low_D, high_D, mean_D = (reduce(table.codes, axis=0) for reduce in (np.min, np.max, np.mean))
    moving = np.flatnonzero(high_D > low_D)
    deviation_D = np.maximum(high_D - mean_D, mean_D - low_D)[moving]
    spread_DK = np.empty((len(moving), len(chosen)))
    codes_DN = None if is_cpu(device) else torch.from_numpy(table.codes.T[moving]).to(device)
    for place, k in enumerate(chosen):
        rows, labels = classes(table, k)
        if factor_bins is not None and table.factor_types[k] == "discrete":
            labels = _binned(table.factors[rows, k], factor_bins)
        if codes_DN is None:
            spread_DK[:, place] = _spread(table.codes, moving, rows, labels, quantile)
        else:
            spread_DK[:, place] = _spread_on_device(codes_DN, rows, labels, quantile)
    return Robustness(moving, 1.0 - spread_DK / deviation_D[:, None], deviation_D)


def _binned(values_n: Floats, bins: int) -> Indices:
    """Equal-width bins over the range of a discrete factor, numbered without gaps."""
    return np.unique(np.digitize(values_n, bin_edges(values_n, bins)), return_inverse=True)[1].reshape(-1)


def _by_value(rows: Indices, labels: Indices) -> list[Indices]:
    """The rows of each value."""
    return np.split(rows[np.argsort(labels, kind="stable")], np.cumsum(np.bincount(labels))[:-1])


def _spread_on_device(codes_DN: Tensor, rows: Indices, labels: Indices, quantile: float) -> Floats:
    """`_spread` in torch."""
    by_value = _by_value(rows, labels)
    spread_D = codes_DN.new_zeros(len(codes_DN))
    for group in by_value:
        codes_Dn = codes_DN[:, torch.from_numpy(group).to(codes_DN.device)]
        away_Dn = (codes_Dn - codes_Dn.mean(1, keepdim=True)).abs().sort(dim=1).values
        place = quantile * (len(group) - 1)
        low, high = away_Dn[:, math.floor(place)], away_Dn[:, math.ceil(place)]
        spread_D += low + (place - math.floor(place)) * (high - low)
    return (spread_D / len(by_value)).cpu().numpy()


def _spread(codes_ND: Floats, moving: Indices, rows: Indices, labels: Indices, quantile: float) -> Floats:
    """The quantile of the deviations from the mean within each value, mean over the values, [D]."""
    by_value = _by_value(rows, labels)
    step = max(1, _GATHERED // max(len(group) for group in by_value))
    spread_D = np.zeros(len(moving))
    for start in range(0, len(moving), step):
        part = moving[start : start + step]
        for group in by_value:
            codes_nD = codes_ND[np.ix_(group, part)]
            away_nD = np.abs(codes_nD - codes_nD.mean(axis=0))
            spread_D[start : start + step] += np.quantile(away_nD, quantile, axis=0, overwrite_input=True)
    return spread_D / len(by_value)


IRS = Metric(
    "irs",
    irs_score,
    "Interventional robustness (IRS)",
    "How constant each latent stays while its factor is held constant and all others change.",
    definition="disentanglement_lib: quantile 0.99",
    invariant=("permutation", "sign"),  # codes are weighted by their largest deviation
    bootstrap=True,
    quick=True,
)
