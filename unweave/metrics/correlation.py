"""Scores computed from means and covariances of codes and factors.

Shape letters: N rows, D codes, K factors.
"""

import numpy as np

from unweave.errors import check_choice, renamed_arguments
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

_SMALLEST = 1e-12  # smaller eigenvalues of a correlation matrix are rounding errors
_CHUNK = 65_536  # rows centred at once


@renamed_arguments(kinds="factor_types")
def mcc_score(codes: Array, factors: Array, *, method: str = "pearson", factor_types: FactorTypes = None) -> float:
    """Mean correlation coefficient (Hyvärinen & Morioka 2016, https://arxiv.org/abs/1605.06336), in 0..1.

    The mean absolute correlation over the varying factors, for the one-to-one matching of factors to codes that
    maximises it. `method` is "pearson" or "spearman" (rank correlation).

    >>> factors = [[0, 0], [0, 1], [1, 0], [1, 1]]
    >>> mcc_score([[0, 3], [-1, 3], [0, 5], [-1, 5]], factors)
    1.0
    """
    from scipy.optimize import linear_sum_assignment

    table = read_table(codes, factors, factor_types=factor_types)
    correlation_DK = np.abs(correlation_matrix(table, varying_factors(table), method=method))
    pairs = linear_sum_assignment(correlation_DK, maximize=True)
    # With fewer codes than factors, unmatched factors count 0.
    return float(min(correlation_DK[pairs].sum() / correlation_DK.shape[1], 1.0))


def correlation_matrix(table: MetricInputs, factors: list[int], *, method: str = "pearson") -> Floats:
    """Return the correlation of each code with each of these factors, [D, K]; 0 for constants."""
    check_choice("method", method, ("pearson", "spearman"))
    rows = [np.flatnonzero(~np.isnan(table.factors[:, k])) for k in factors]
    units = [_unit(table.factors[present, k], method) for present, k in zip(rows, factors, strict=True)]
    correlation_DK = np.zeros((table.codes.shape[1], len(factors)))
    for d in range(len(correlation_DK)):
        column_N = table.codes[:, d].copy()  # contiguous
        unit_N = _unit(column_N, method)
        for place, (present, unit_n) in enumerate(zip(rows, units, strict=True)):
            code_n = unit_N if len(present) == len(column_N) else _unit(column_N[present], method)
            correlation_DK[d, place] = code_n @ unit_n
    return correlation_DK


def _unit(values_n: Floats, method: str) -> Floats:
    """Return the values centred and with norm 1, so that dot products are correlations; zeros if constant."""
    from scipy.stats import rankdata

    if values_n.min() == values_n.max():
        return np.zeros(len(values_n))
    centred = rankdata(values_n) if method == "spearman" else values_n / np.abs(values_n).max()
    centred = centred - centred.mean()
    length = float(np.linalg.norm(centred))
    return centred / length if length > 0 else centred


def covariance(codes_ND: Floats) -> Floats:
    """Return the unbiased covariance of the codes, [D, D]; exactly 0 for constant codes and for a single row."""
    mean_D = codes_ND.mean(axis=0)
    constant = codes_ND.min(axis=0) == codes_ND.max(axis=0)
    total_DD = np.zeros((codes_ND.shape[1],) * 2)
    for start in range(0, len(codes_ND), _CHUNK):
        centred = np.where(constant, 0.0, codes_ND[start : start + _CHUNK] - mean_D)
        total_DD += centred.T @ centred
    return total_DD / max(len(codes_ND) - 1, 1)


def gaussian_total_correlation(codes: Array, factors: Array | None = None) -> float:
    """Total correlation, in nats, of a Gaussian with the covariance of the codes; 0 if uncorrelated.

    As in the unsupervised scores of disentanglement_lib, but constant codes are ignored instead of giving NaN.
    Redundant codes add 13.8 nats each instead of infinity, because the covariance has float precision. The factors
    are not used.

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
    """Squared Wasserstein-2 distance between Gaussians with the covariance of the codes and with its diagonal.

    As in disentanglement_lib; `normalised` divides by the total variance.
    """
    covariance_DD = covariance(as_matrix(codes, "codes").astype(np.float64, copy=False))
    deviation_D = np.sqrt(np.diag(covariance_DD))
    between = covariance_DD * np.outer(deviation_D, deviation_D)  # symmetric, with the eigenvalues of C diag(C)
    cross = np.sqrt(np.maximum(np.linalg.eigvalsh(between), 0.0)).sum()
    distance = max(float(2.0 * (np.trace(covariance_DD) - cross)), 0.0)
    total = float(np.trace(covariance_DD))
    return distance / total if normalised and total > 0 else distance


def active_dimensions(codes: Array, factors: Array | None = None, *, threshold: float = 0.01) -> float:
    """Number of codes with a variance above the threshold (Burda et al. 2016, appendix C).

    Intended for posterior means, https://arxiv.org/abs/1509.00519. The factors are not used.

    >>> active_dimensions([[0, 7, 1], [1, 7, 0], [0, 7, 0]])
    2.0
    """
    check_at_least("threshold", threshold, 0)
    codes_ND = as_matrix(codes, "codes").astype(np.float64, copy=False)
    variance_D = np.array([column.var(ddof=1) if len(column) > 1 else 0.0 for column in codes_ND.T])
    moving_D = codes_ND.max(axis=0) > codes_ND.min(axis=0)  # the variance of a constant may be a rounding error
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
