"""InfoMEC: modularity, compactness and explicitness, measured by information.

Shape letters: N rows, D codes, K factors.
"""

import numpy as np

from unweave.metrics.histogram_mi import device_of
from unweave.metrics.inputs import (
    Array,
    FactorTypes,
    Floats,
    Indices,
    MetricInputs,
    check_at_least,
    classes,
    read_table,
    subsample,
    varying_factors,
)
from unweave.metrics.knn_mi import neighbour_information_matrix
from unweave.metrics.metric import Metric
from unweave.metrics.parallel import Device
from unweave.metrics.solvers.linear import class_scores, fit_logistic, probabilities, varies


def infomec_scores(
    codes: Array,
    factors: Array,
    *,
    neighbours: int = 10,
    prune: float = 0.05,
    rows: int = 10_000,
    iterations: int = 100,
    seed: int = 0,
    factor_types: FactorTypes = None,
    device: str | None = None,
) -> dict[str, float]:
    """InfoM, InfoC and InfoE (Hsu et al. 2023, section 4, https://arxiv.org/abs/2305.18378), each in 0..1.

    InfoM: each code has information about only one factor. InfoC: only one code has information about each factor.
    Both use nearest-neighbour estimates, divided by the entropy of the factor, of the codes whose range is more than
    `prune` times the largest. InfoE: the share of each factor that a linear model of all codes predicts. At most
    `rows` random rows are used.
    """
    check_at_least("neighbours", neighbours, 1)
    check_at_least("prune", prune, 0)
    check_at_least("rows", rows, 2)
    check_at_least("iterations", iterations, 1)
    table = subsample(read_table(codes, factors, factor_types=factor_types), rows, seed)
    chosen = varying_factors(table)
    range_D = np.ptp(table.codes, axis=0)
    active = np.flatnonzero((range_D > prune * range_D.max()) & (range_D > 0))
    explicit = explicitness(table, chosen, iterations=iterations, device=device_of(codes, device))
    if not len(active):
        return {"modularity": 0.0, "compactness": 0.0, "explicitness": explicit}
    kept = table._replace(codes=table.codes[:, active])
    information_DK, entropies_K = neighbour_information_matrix(kept, chosen, neighbours=neighbours)
    share_DK = information_DK / entropies_K
    modularity, compactness = normalised_max_share(share_DK), normalised_max_share(share_DK.T)
    return {"modularity": modularity, "compactness": compactness, "explicitness": explicit}


def normalised_max_share(share: Floats) -> float:
    """Return the mean share of each row that is in its largest entry, scaled to 0 (equal entries) .. 1 (one entry).

    A row of zeros counts as equal entries. With a single column, other rows count as one entry.
    """
    total, columns = share.sum(axis=1), share.shape[1]
    if columns == 1:
        return float((total > 0).mean())
    largest = np.divide(share.max(axis=1), total, out=np.full(len(share), 1.0 / columns), where=total > 0)
    return float(np.clip((largest.mean() - 1.0 / columns) / (1.0 - 1.0 / columns), 0.0, 1.0))


def explicitness(table: MetricInputs, factors: list[int], *, iterations: int, device: Device = None) -> float:
    """Return the share of each factor that a linear model of the codes predicts, mean over the factors."""
    mean_D, deviation_D = table.codes.mean(axis=0), table.codes.std(axis=0)
    varying = np.flatnonzero(varies(table.codes, deviation_D))
    if not len(varying):
        return 0.0
    codes_ND = (table.codes[:, varying] - mean_D[varying]) / deviation_D[varying]
    found = []
    for k in factors:
        rows, labels = classes(table, k)
        if table.factor_types[k] == "continuous":
            found.append(_linear_share(codes_ND[rows], table.factors[rows, k]))
        else:
            found.append(_logistic_share(codes_ND[rows], labels, iterations, device))
    return float(np.clip(np.mean(found), 0.0, 1.0))


def _linear_share(codes_nD: Floats, factor_n: Floats) -> float:
    """R^2 of least squares."""
    design = np.column_stack([codes_nD, np.ones(len(codes_nD))])
    predicted = design @ np.linalg.lstsq(design, factor_n, rcond=None)[0]
    return float(1.0 - np.square(factor_n - predicted).mean() / factor_n.var())


def _logistic_share(codes_nD: Floats, labels_n: Indices, iterations: int, device: Device) -> float:
    """Return the relative decrease of the log-loss by a logistic regression without penalty, with balanced classes."""
    sizes_V = np.bincount(labels_n)
    balanced_n = len(labels_n) / (len(sizes_V) * sizes_V[labels_n].astype(np.float64))
    options = {"inverse_penalty": np.inf, "weights_N": balanced_n, "iterations": iterations, "device": device}
    weights = fit_logistic(codes_nD, labels_n, len(sizes_V), **options)  # type: ignore[arg-type]
    true_n = probabilities(class_scores(weights, codes_nD))[np.arange(len(labels_n)), labels_n]
    loss = -np.log(np.maximum(true_n, np.finfo(np.float64).tiny)).mean()
    return float(1.0 - loss / np.log(len(sizes_V)))


INFOMEC = Metric(
    "infomec",
    infomec_scores,
    "InfoMEC",
    "Modularity, compactness and explicitness, all three based on information.",
    definition="Hsu et al.: 10 neighbours, pruned at 1/20 of the largest range",
    parts={
        "modularity": "InfoM: whether each latent has information about only one factor.",
        "compactness": "InfoC: whether the information about each factor is in only one latent.",
        "explicitness": "InfoE: how much of each factor a linear model of all latents predicts.",
    },
    invariant=("permutation", "sign"),  # codes are pruned by their range relative to the largest
    test_options={"iterations": 12},
)
