"""Scores of means and covariances: codes against factors, codes against each other, codes alone.

Shape letters: N rows, D codes, K factors.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from unweave.errors import UserError
from unweave.metrics.inputs import (
    Array,
    FactorTypes,
    Floats,
    MetricInputs,
    as_matrix,
    check_at_least,
    read_table,
    varying_factors,
)
from unweave.metrics.metric import Metric

_SMALLEST = 1e-12  # eigenvalues of a correlation matrix below this are rounding: the codes are redundant
_CHUNK = 65_536  # rows centred at once


def mcc_score(codes: Array, factors: Array, *, method: str = "pearson", factor_types: FactorTypes = None) -> float:
    """Mean correlation coefficient (Hyvärinen & Morioka 2016, https://arxiv.org/abs/1605.06336), in 0..1.

    Each factor is paired with a code of its own so that the absolute correlations add up to the most; the
    mean over the factors that vary. `method` is "pearson" or "spearman" (ranks: any monotone relation).

    >>> factors = [[0, 0], [0, 1], [1, 0], [1, 1]]
    >>> mcc_score([[0, 3], [-1, 3], [0, 5], [-1, 5]], factors)
    1.0
    """
    from scipy.optimize import linear_sum_assignment

    table = read_table(codes, factors, factor_types=factor_types)
    correlation_DK = np.abs(correlation_matrix(table, varying_factors(table), method=method))
    pairs = linear_sum_assignment(correlation_DK, maximize=True)
    # With fewer codes than factors some factors have no partner and count 0.
    return float(min(correlation_DK[pairs].sum() / correlation_DK.shape[1], 1.0))


def correlation_matrix(table: MetricInputs, factors: list[int], *, method: str = "pearson") -> Floats:
    """The correlation of each code with each of the named factors, [D, K]; 0 for what is constant."""
    if method not in ("pearson", "spearman"):
        raise UserError(f"method: '{method}' is unknown; accepted are pearson and spearman")
    rows = [np.flatnonzero(~np.isnan(table.factors[:, k])) for k in factors]
    units = [_unit(table.factors[present, k], method) for present, k in zip(rows, factors, strict=True)]
    correlation_DK = np.zeros((table.codes.shape[1], len(factors)))
    for d in range(len(correlation_DK)):
        column_N = table.codes[:, d].copy()  # one column of a wide table at a time, side by side in memory
        whole_N = _unit(column_N, method)
        for place, (present, unit_n) in enumerate(zip(rows, units, strict=True)):
            code_n = whole_N if len(present) == len(column_N) else _unit(column_N[present], method)
            correlation_DK[d, place] = code_n @ unit_n
    return correlation_DK


def _unit(values_n: Floats, method: str) -> Floats:
    """Centred and of length 1, so that a product is a correlation; zeros if constant."""
    from scipy.stats import rankdata

    if values_n.min() == values_n.max():
        return np.zeros(len(values_n))
    centred = rankdata(values_n) if method == "spearman" else values_n / np.abs(values_n).max()
    centred = centred - centred.mean()
    length = float(np.linalg.norm(centred))
    unit: Floats = centred / length if length > 0 else centred
    return unit


def _chunks(codes_ND: Floats) -> Iterator[Floats]:
    for start in range(0, len(codes_ND), _CHUNK):
        yield codes_ND[start : start + _CHUNK]


def covariance(codes_ND: Floats) -> Floats:
    """The unbiased covariance of the codes, [D, D]; exactly 0 for a constant code, and with a single row."""
    mean_D = codes_ND.mean(axis=0)
    constant = codes_ND.min(axis=0) == codes_ND.max(axis=0)
    total_DD = np.zeros((codes_ND.shape[1],) * 2)
    for part in _chunks(codes_ND):
        centred = np.where(constant, 0.0, part - mean_D)
        total_DD += centred.T @ centred
    return total_DD / max(len(codes_ND) - 1, 1)


def gaussian_total_correlation(codes: Array, factors: Array | None = None) -> float:
    """Total correlation, in nats, of a Gaussian with the codes' covariance: 0 if uncorrelated, then growing.

    As in disentanglement_lib's unsupervised scores. Constant codes are left out (there: NaN). Redundant
    codes, whose true value is infinite, count 13.8 nats each: the covariance is known to float precision only.
    The factors are not used; the argument is there so that it is called like the others.

    >>> gaussian_total_correlation([[0, 0], [0, 1], [1, 0], [1, 1]])
    0.0
    """
    covariance_DD = covariance(as_matrix(codes, "codes").astype(np.float64, copy=False))
    deviation_D = np.sqrt(np.diag(covariance_DD))
    moving = np.flatnonzero(deviation_D > 0)
    if not len(moving):
        return 0.0
    correlation = covariance_DD[np.ix_(moving, moving)] / np.outer(deviation_D[moving], deviation_D[moving])
    eigenvalues = np.linalg.eigvalsh(correlation)
    return max(0.0, float(-0.5 * np.log(np.maximum(eigenvalues, _SMALLEST)).sum()))


def gaussian_wasserstein_correlation(codes: Array, *, normalised: bool = False) -> float:
    """Squared Wasserstein-2 distance between a Gaussian with the codes' covariance and one without correlations.

    As in disentanglement_lib; `normalised` divides by the total variance, so that scale does not matter.
    """
    covariance_DD = covariance(as_matrix(codes, "codes").astype(np.float64, copy=False))
    deviation_D = np.sqrt(np.diag(covariance_DD))
    between = covariance_DD * np.outer(deviation_D, deviation_D)  # symmetric, with the eigenvalues of C diag(C)
    cross = np.sqrt(np.maximum(np.linalg.eigvalsh(between), 0.0)).sum()
    distance = max(float(2.0 * (np.trace(covariance_DD) - cross)), 0.0)
    total = float(np.trace(covariance_DD))
    return distance / total if normalised and total > 0 else distance


def active_dimensions(codes: Array, factors: Array | None = None, *, threshold: float = 0.01) -> float:
    """How many codes are in use: those whose variance is above the threshold (Burda et al. 2016, appendix C).

    Meant for the means of an encoder, https://arxiv.org/abs/1509.00519. The factors are not used.

    >>> active_dimensions([[0, 7, 1], [1, 7, 0], [0, 7, 0]])
    2.0
    """
    check_at_least("threshold", threshold, 0)
    codes_ND = as_matrix(codes, "codes").astype(np.float64, copy=False)
    variance_D = np.array([column.var(ddof=1) if len(column) > 1 else 0.0 for column in codes_ND.T])
    moving_D = codes_ND.max(axis=0) > codes_ND.min(axis=0)  # a constant's variance may be a rounding error
    return float(((variance_D > threshold) & moving_D).sum())


MCC = Metric(
    "mcc",
    mcc_score,
    "Mean correlation coefficient (MCC)",
    "The linear correlation of each factor with a latent of its own, for the best one-to-one matching.",
    definition="absolute Pearson, optimal matching",
    bootstrap=True,
    quick=True,
)

GAUSSIAN_TOTAL_CORRELATION = Metric(
    "gaussian_total_correlation",
    gaussian_total_correlation,
    "Gaussian total correlation",
    "Correlation between the latents, in nats; 0 is uncorrelated. Needs no factors.",
    definition="disentanglement_lib",
    worst=np.inf,
    best=0.0,
    better="lower",
    factors=0,
    bootstrap=True,
)

ACTIVE_DIMENSIONS = Metric(
    "active_dimensions",
    active_dimensions,
    "Active latents",
    "Number of latents that vary between observations: variance above 0.01. Needs no factors.",
    definition="Burda et al.: variance above 0.01",
    best=np.inf,
    better="neither",
    invariant=("permutation", "sign"),
    factors=0,
    bootstrap=True,
)
