"""Interventional robustness score: does a code stay constant when only other factors change?

Shape letters: N rows, D codes, K factors, V values of one factor, n rows that share a value.
"""

import math
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from unweave.errors import invalid, renamed_arguments
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
    read_table,
    varying_factors,
)
from unweave.metrics.metric import Metric
from unweave.metrics.parallel import Device, is_cpu

_GATHERED = 8_000_000  # numbers gathered at once: 64 MB


class Robustness(NamedTuple):
    """Deviations of the codes that are not constant."""

    codes: Indices  # columns of the table [D]
    matrix: Floats  # 1 - mean deviation within the values of factor k / largest deviation of the code [D, K]
    deviations: Floats  # the largest deviation of each code from its mean [D]


@renamed_arguments(kinds="factor_types")
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

    For each code and its best factor: the deviation of the code from its mean while the factor has a fixed value,
    relative to its largest deviation. Codes are weighted by their largest deviation. As in disentanglement_lib, the
    0.99 quantile of the deviations replaces the paper's maximum (1.0), and factors with more values than `factor_bins`
    are binned (None: not binned).

    >>> factors = [[0, 0], [0, 1], [1, 0], [1, 1]]
    >>> irs_score(factors, factors)
    1.0
    """
    table = read_table(codes, factors, factor_types=factor_types)
    found = robustness(table, quantile=quantile, factor_bins=factor_bins, device=device_of(codes, device))
    if not len(found.codes):
        return 0.0
    best_D = found.matrix.max(axis=1)
    return float(np.clip(np.average(best_D, weights=found.deviations), 0.0, 1.0))


def robustness(
    table: MetricInputs, *, quantile: float = 0.99, factor_bins: int | None = BINS, device: Device = None
) -> Robustness:
    """Return the robustness of each code that is not constant for each factor that varies."""
    if not 0.0 <= quantile <= 1.0:
        raise invalid("quantile", quantile, "from 0 to 1")
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
    """Return the equal-width bins of the values of a discrete factor, numbered without gaps."""
    return np.unique(np.digitize(values_n, bin_edges(values_n, bins)), return_inverse=True)[1].reshape(-1)


def _by_value(rows: Indices, labels: Indices) -> list[Indices]:
    """Return the rows of each value."""
    return np.split(rows[np.argsort(labels, kind="stable")], np.cumsum(np.bincount(labels))[:-1])


def _spread_on_device(codes_DN: Tensor, rows: Indices, labels: Indices, quantile: float) -> Floats:
    """Compute `_spread` with torch."""
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
    """Return the quantile of the deviations from the mean within each value, averaged over the values, [D]."""
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
