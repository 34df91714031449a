"""Scores computed from the mutual information between codes and factors: MIG and its variants, modularity.

Every score is a short function of the information matrix [D, K] and the entropies of the factors [K], which
histogram_mi.py computes. Factors with a single value are left out.

Shape letters: N rows, D codes, K factors, B bins of a code, V values of one factor.
"""

from collections.abc import Hashable, Sequence

import numpy as np

from unweave.errors import check_choice, invalid
from unweave.metrics.histogram_mi import Information, count_table, device_of, information_from_counts
from unweave.metrics.inputs import BINS, Array, FactorTypes, Floats, array_error, as_matrix, read_table, varying_factors
from unweave.metrics.knn_mi import neighbour_information_matrix
from unweave.metrics.metric import Metric


def two_best(matrix: Floats, axis: int) -> tuple[Floats, Floats]:
    """Return the largest and the second largest entry along an axis; the second is 0 if there is only one entry."""
    padded = np.pad(matrix, [(1, 0) if a == axis else (0, 0) for a in range(2)])
    ordered = np.moveaxis(np.sort(padded, axis=axis), axis, 0)
    return ordered[-1], ordered[-2]


def read_information(
    codes: Array, factors: Array, bins: int, factor_types: FactorTypes, device: str | None
) -> Information:
    table = read_table(codes, factors, factor_types=factor_types)
    return information_from_counts(count_table(table, bins=bins, device=device_of(codes, device)))


def mig_gaps(information_DK: Floats, entropies_K: Floats) -> Floats:
    """Return the gap between the two best codes of each factor, divided by its entropy, [K]."""
    first_K, second_K = two_best(information_DK, axis=0)
    return (first_K - second_K) / entropies_K


def mig_per_factor(codes: Array, factors: Array, *, bins: int = BINS, factor_types: FactorTypes = None) -> Floats:
    """Return the gap between the two best codes of each factor, divided by its entropy, [K]; NaN if it is constant."""
    known = read_information(codes, factors, bins, factor_types, None)
    gaps_K = np.full(as_matrix(factors, "factors", missing=True).shape[1], np.nan)
    gaps_K[list(known.factors)] = mig_gaps(known.mutual, known.entropy)
    return gaps_K


def mig_score(
    codes: Array,
    factors: Array,
    *,
    bins: int = BINS,
    estimator: str = "histogram",
    factor_types: FactorTypes = None,
    device: str | None = None,
) -> float:
    """Mutual information gap (Chen et al. 2018, section 4, https://arxiv.org/abs/1802.04942), in 0..1.

    As in disentanglement_lib: codes are binned, mean over the factors that vary. `estimator="knn"` uses nearest
    neighbours instead of bins. One code per factor scores 1; two equal codes score 0:

    >>> factors = [[0, 0], [0, 1], [1, 0], [1, 1]]
    >>> mig_score(factors, factors)
    1.0
    >>> mig_score([[0, 0], [0, 0], [1, 1], [1, 1]], factors)
    0.0
    """
    check_choice("estimator", estimator, ("histogram", "knn"))
    if estimator == "knn":
        table = read_table(codes, factors, factor_types=factor_types)
        return float(mig_gaps(*neighbour_information_matrix(table, varying_factors(table))).mean())
    return mig_from_information(read_information(codes, factors, bins, factor_types, device))


def mig_from_information(known: Information) -> float:
    return float(mig_gaps(known.mutual, known.entropy).mean())


def mig_sup_score(
    codes: Array, factors: Array, *, bins: int = BINS, factor_types: FactorTypes = None, device: str | None = None
) -> float:
    """MIG-sup (Li et al. 2020, section 3.3, https://arxiv.org/abs/2002.10549), in 0..1: MIG per code.

    For each code the gap between the two factors it has most information about, relative to their entropies; mean
    over all codes.

    >>> factors = [[0, 0], [0, 1], [1, 0], [1, 1]]
    >>> mig_sup_score(factors, factors)
    1.0
    """
    return mig_sup_from_information(read_information(codes, factors, bins, factor_types, device))


def mig_sup_from_information(known: Information) -> float:
    first_D, second_D = two_best(known.mutual / known.entropy, axis=1)
    return float((first_D - second_D).mean())


def modularity_score(
    codes: Array, factors: Array, *, bins: int = BINS, factor_types: FactorTypes = None, device: str | None = None
) -> float:
    """Modularity (Ridgeway & Mozer 2018, section 3, https://arxiv.org/abs/1802.05312), in 0..1.

    One minus the normalised squared information of a code about factors other than its best one; mean over the codes.
    A code without information counts 0, as in disentanglement_lib.

    >>> factors = [[0, 0], [0, 1], [1, 0], [1, 1]]
    >>> modularity_score(factors, factors)
    1.0
    """
    return modularity_from_information(read_information(codes, factors, bins, factor_types, device))


def modularity_from_information(known: Information) -> float:
    squared_DK = np.square(known.mutual)
    best_D = squared_DK.max(axis=1)
    others = max(squared_DK.shape[1] - 1, 1)
    beside_D = np.divide(squared_DK.sum(axis=1) - best_D, others * best_D, out=np.ones_like(best_D), where=best_D > 0)
    return float((1.0 - beside_D).mean())


def jemmig_score(
    codes: Array, factors: Array, *, bins: int = BINS, factor_types: FactorTypes = None, device: str | None = None
) -> float:
    """Joint entropy minus MIG (Do & Tran 2020, section 4.5, https://arxiv.org/abs/1908.09961), in 0..1, normalised.

    MIG that also penalises information of the best code about anything else: 1 - (H(z, v) - I(z; v) + I(z'; v)) /
    (H(v) + log bins) with the best code z and the second best z'; mean over the factors.

    >>> factors = [[0, 0], [0, 1], [1, 0], [1, 1]]
    >>> jemmig_score(factors, factors)
    1.0
    """
    return jemmig_from_information(read_information(codes, factors, bins, factor_types, device))


def jemmig_from_information(known: Information) -> float:
    first_K, second_K = two_best(known.mutual, axis=0)
    # Of codes with equal information, the one with the smallest joint entropy is used.
    joint_K = np.where(known.mutual >= first_K - 1e-12, known.joint, np.inf).min(axis=0)
    score_K = 1.0 - (joint_K - first_K + second_K) / (known.entropy + np.log(known.bins))
    return float(np.clip(score_K.mean(), 0.0, 1.0))


def dcimig_score(
    codes: Array, factors: Array, *, bins: int = BINS, factor_types: FactorTypes = None, device: str | None = None
) -> float:
    """DCIMIG (Sepliarskaia et al. 2019, section 5, https://arxiv.org/abs/1910.05587), in 0..1.

    Each code is assigned to the factor it has most information about, with its gap to the second factor. The score is
    the sum of the largest gap assigned to each factor, divided by the sum of the entropies.

    >>> factors = [[0, 0], [0, 1], [1, 0], [1, 1]]
    >>> dcimig_score(factors, factors)
    1.0
    """
    return dcimig_from_information(read_information(codes, factors, bins, factor_types, device))


def dcimig_from_information(known: Information) -> float:
    first_D, second_D = two_best(known.mutual, axis=1)
    held_DK = np.where(known.mutual == first_D[:, None], (first_D - second_D)[:, None], 0.0)
    return float(held_DK.max(axis=0).sum() / known.entropy.sum())


def group_mig_score(
    codes: Array,
    factors: Array,
    code_groups: Sequence[Hashable],
    factor_groups: Sequence[Hashable],
    *,
    bins: int = BINS,
    factor_types: FactorTypes = None,
    device: str | None = None,
) -> float:
    """Group-MIG: MIG between groups of codes, in -1..1.

    For each factor the information of the best code of its group minus that of the best code of all other groups,
    divided by the entropy of the factor. Groups are named by any labels, one per code and one per factor. Negative
    scores mean that other groups have more information. Factors of group None are left out.

    >>> factors = [[0, 0], [0, 1], [1, 0], [1, 1]]
    >>> group_mig_score(factors, factors, ["content", "style"], ["content", "style"])
    1.0
    >>> group_mig_score(factors, factors, ["content", "style"], ["style", "content"])
    -1.0
    """
    table = read_table(codes, factors, factor_types=factor_types)
    for name, groups, size in (
        ("code_groups", code_groups, table.codes.shape[1]),
        ("factor_groups", factor_groups, len(table.factor_types)),
    ):
        if isinstance(groups, str) or len(groups) != size:
            raise array_error(name, f"{len(groups)} labels", f"a list of {size} labels")
    known = information_from_counts(count_table(table, bins=bins, device=device_of(codes, device)))
    owned = [column for column, k in enumerate(known.factors) if factor_groups[k] is not None]
    if not owned:
        raise invalid("factor_groups", list(factor_groups), "a list with a label of a factor that varies")
    share_DK = (known.mutual / known.entropy)[:, owned]
    right_DK = np.array([[code == factor_groups[known.factors[k]] for k in owned] for code in code_groups])
    right_K = np.where(right_DK, share_DK, 0.0).max(axis=0)
    wrong_K = np.where(right_DK, 0.0, share_DK).max(axis=0)
    return float((right_K - wrong_K).mean())


MIG = Metric(
    "mig",
    mig_score,
    "Mutual information gap (MIG)",
    "How much more information one latent has about each factor than any other latent; 1 is perfect, 0 is none.",
    definition="disentanglement_lib: 20 bins",
    from_information=mig_from_information,
    quick=True,
)

MODULARITY = Metric(
    "modularity",
    modularity_score,
    "Modularity",
    "Whether each latent has information about only one factor; 1 is one each, 0 is all factors equally.",
    definition="disentanglement_lib: 20 bins, inactive codes count 0",
    factors=2,
    from_information=modularity_from_information,
    quick=True,
)

MIG_SUP = Metric(
    "mig_sup",
    mig_sup_score,
    "MIG per latent (MIG-sup)",
    "How much more information each latent has about one factor than about any other, mean over the latents.",
    definition="Li et al.: I/H(factor), 20 bins",
    from_information=mig_sup_from_information,
)

DCIMIG = Metric(
    "dcimig",
    dcimig_score,
    "DCIMIG",
    "The share of the factors' information that is in latents with information about only that factor.",
    definition="Sepliarskaia et al., 20 bins",
    from_information=dcimig_from_information,
)

JEMMIG = Metric(
    "jemmig",
    jemmig_score,
    "Joint entropy minus MIG (JEMMIG)",
    "MIG that also requires the best latent of each factor to contain no other information.",
    definition="Do & Tran, normalised, 20 bins",
    from_information=jemmig_from_information,
)

GROUP_MIG = Metric(
    "group_mig",
    group_mig_score,
    "MIG between groups (group-MIG)",
    "How much more information the intended group of latents has about each factor than the other groups; "
    "below 0, less.",
    definition="20 bins",
    worst=-1.0,
    quick=True,
    needs=("groups",),
)
