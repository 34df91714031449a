"""FactorVAE and beta-VAE scores: hold one factor fixed and classify which one it is from the variation of the codes.

Shape letters: N rows, D codes, K factors, V values of one factor, M votes, B rows (or pairs of rows) per vote.
"""

from typing import NamedTuple

import numpy as np

from unweave.errors import renamed_arguments
from unweave.metrics.inputs import (
    Array,
    FactorTypes,
    Floats,
    Indices,
    MetricInputs,
    check_at_least,
    classes,
    read_table,
    varying_factors,
)
from unweave.metrics.metric import Metric
from unweave.metrics.solvers.linear import class_scores, fit_logistic

_GATHERED = 2_000_000  # numbers gathered at once: 16 MB, whatever the size of the table


class ActiveCodes(NamedTuple):
    """The codes that vary enough to be compared."""

    columns: Indices  # of the table
    variances: Floats  # of these codes over the whole table


def active_codes(
    codes_ND: Floats, rng: np.random.Generator, *, variance_rows: int = 10_000, prune_below: float = 0.05
) -> ActiveCodes:
    """Return the codes with a standard deviation of at least `prune_below` over at most `variance_rows` rows."""
    check_at_least("variance_rows", variance_rows, 2)
    check_at_least("prune_below", prune_below, 0)
    if len(codes_ND) > variance_rows:
        codes_ND = codes_ND[rng.choice(len(codes_ND), variance_rows, replace=False, shuffle=False)]
    variance_D = codes_ND.var(axis=0, ddof=1 if len(codes_ND) > 1 else 0)
    # Constants are never active. Their variance may be a rounding error, but their range is exactly 0.
    is_varying_D = (np.ptp(codes_ND, axis=0) > 0) & (variance_D > 0)
    columns = np.flatnonzero(is_varying_D & (np.sqrt(variance_D) >= prune_below))
    return ActiveCodes(columns, variance_D[columns])


class Fixed(NamedTuple):
    """One factor that a vote may hold fixed."""

    rows: Indices  # of the table, with a value of the factor [n]
    labels: Indices  # their classes [n]
    order: Indices  # positions in `rows`, sorted by class [n]
    first: Indices  # position in `order` of the first row of each class [V]
    sizes: Indices  # number of rows of each class [V]
    inside: Indices  # position of each row in its class [n]


def fixed_factors(table: MetricInputs) -> list[Fixed]:
    """Return the factors that vary; continuous ones are divided into 20 equal-width bins."""
    found = []
    for rows_n, labels_n in (classes(table, k) for k in varying_factors(table)):
        count_V, order_n = np.bincount(labels_n), np.argsort(labels_n, kind="stable")
        first_V, inside_n = np.cumsum(count_V) - count_V, np.empty_like(rows_n)
        inside_n[order_n] = np.arange(len(rows_n)) - np.repeat(first_V, count_V)
        found.append(Fixed(rows_n, labels_n, order_n, first_V, count_V, inside_n))
    return found


def draw_groups(fixed: Fixed, values_M: Indices, rng: np.random.Generator, *, batch: int) -> Indices:
    """Return the positions of `batch` rows with each of the values, drawn with replacement, [M, B]."""
    within_MB = rng.integers(fixed.sizes[values_M][:, None], size=(len(values_M), batch))
    return fixed.order[fixed.first[values_M][:, None] + within_MB]


def least_varying_codes(
    codes_ND: Floats, active: ActiveCodes, fixed: Fixed, rng: np.random.Generator, *, votes: int, batch: int
) -> Indices:
    """Return the active code with the smallest normalised variance in each of `votes` groups of one factor, [M]."""
    # The value of a random row, so that values are fixed as often as they occur.
    values_M = fixed.labels[rng.integers(len(fixed.labels), size=votes)]
    chunk = max(1, _GATHERED // (batch * codes_ND.shape[1]))
    winners = [np.empty(0, np.int64)]
    for start in range(0, votes, chunk):
        places_MB = draw_groups(fixed, values_M[start : start + chunk], rng, batch=batch)
        drawn_MBD = codes_ND[fixed.rows[places_MB]]
        if len(active.columns) < codes_ND.shape[1]:
            drawn_MBD = drawn_MBD[:, :, active.columns]
        drawn_MBD -= drawn_MBD[:, :1]  # a constant code gets variance 0, not a rounding error
        winners.append((drawn_MBD.var(axis=1, ddof=1) / active.variances).argmin(axis=1))
    return np.concatenate(winners)


def vote_table(
    codes_ND: Floats, active: ActiveCodes, factors: list[Fixed], rng: np.random.Generator, *, votes: int, batch: int
) -> Indices:
    """Return how often each active code varied least while each factor, drawn uniformly, was fixed, [D, K]."""
    votes_K = np.bincount(rng.integers(len(factors), size=votes), minlength=len(factors))
    winners = [
        least_varying_codes(codes_ND, active, fixed, rng, votes=int(m), batch=batch)
        for fixed, m in zip(factors, votes_K, strict=True)
    ]
    return np.stack([np.bincount(won, minlength=len(active.columns)) for won in winners], axis=1)


def majority_accuracy(train_DK: Indices, test_DK: Indices) -> float:
    """Return the accuracy on `test` of predicting for each code its most frequent factor in `train`."""
    guess_D = train_DK.argmax(axis=1)
    return float(test_DK[np.arange(len(guess_D)), guess_D].sum() / test_DK.sum())


@renamed_arguments(kinds="factor_types")
def factor_vae_score(
    codes: Array,
    factors: Array,
    *,
    votes_train: int = 10_000,
    votes_test: int = 5_000,
    batch: int = 64,
    variance_rows: int = 10_000,
    prune_below: float = 0.05,
    seed: int = 0,
    factor_types: FactorTypes = None,
) -> float:
    """The FactorVAE metric (Kim & Mnih 2018, section 4, https://arxiv.org/abs/1802.05983), in 0..1.

    A vote holds one factor fixed, draws `batch` rows with the same value, and takes the code with the smallest
    variance relative to its overall variance. Codes with an overall standard deviation below `prune_below` are ignored;
    if none is left, the score is 0.
    """
    check_at_least("votes_train", votes_train, 1)
    check_at_least("votes_test", votes_test, 1)
    check_at_least("batch", batch, 2)
    table = read_table(codes, factors, factor_types=factor_types)
    fixed = fixed_factors(table)
    rng = np.random.default_rng(seed)
    active = active_codes(table.codes, rng, variance_rows=variance_rows, prune_below=prune_below)
    if not len(active.columns):
        return 0.0
    train_DK = vote_table(table.codes, active, fixed, rng, votes=votes_train, batch=batch)
    test_DK = vote_table(table.codes, active, fixed, rng, votes=votes_test, batch=batch)
    return majority_accuracy(train_DK, test_DK)


def draw_partners(fixed: Fixed, places_n: Indices, rng: np.random.Generator) -> Indices:
    """Return for each position another one with the same value of the factor, or itself if there is no other."""
    labels_n = fixed.labels[places_n]
    count_n = fixed.sizes[labels_n]
    within_n = rng.integers(np.maximum(count_n - 1, 1))
    # Drawn from one position less than the group has; positions from the row itself on are shifted by one.
    within_n += (count_n > 1) & (within_n >= fixed.inside[places_n])
    return fixed.order[fixed.first[labels_n] + within_n]


def differences(codes_ND: Floats, fixed: Fixed, rng: np.random.Generator, *, votes: int, batch: int) -> Floats:
    """Return the mean absolute difference of each code over the pairs of each vote, which share a factor, [M, D]."""
    chunk = max(1, _GATHERED // (batch * codes_ND.shape[1]))
    found = [np.empty((0, codes_ND.shape[1]))]
    for start in range(0, votes, chunk):
        left = rng.integers(len(fixed.rows), size=(min(chunk, votes - start), batch))
        right = draw_partners(fixed, left, rng)
        found.append(np.abs(codes_ND[fixed.rows[left]] - codes_ND[fixed.rows[right]]).mean(axis=1))
    return np.concatenate(found)


def difference_table(
    codes_ND: Floats, factors: list[Fixed], rng: np.random.Generator, *, votes: int, batch: int
) -> tuple[Floats, Indices]:
    """Return the votes [M, D] and the factor that each held fixed [M]; factors are drawn uniformly."""
    votes_K = np.bincount(rng.integers(len(factors), size=votes), minlength=len(factors))
    found = [differences(codes_ND, fixed, rng, votes=int(m), batch=batch) for fixed, m in zip(factors, votes_K)]
    return np.concatenate(found), np.repeat(np.arange(len(factors)), votes_K)


@renamed_arguments(kinds="factor_types")
def beta_vae_score(
    codes: Array,
    factors: Array,
    *,
    votes_train: int = 10_000,
    votes_test: int = 5_000,
    batch: int = 64,
    seed: int = 0,
    factor_types: FactorTypes = None,
) -> float:
    """The beta-VAE metric (Higgins et al. 2017, section 3, https://openreview.net/forum?id=Sy2fzU9gl), in 0..1.

    A vote draws `batch` pairs of rows that share one factor and takes the mean absolute difference of each code. A
    linear classifier predicts the factor from it. The score is the accuracy on test votes.
    """
    check_at_least("votes_train", votes_train, 1)
    check_at_least("votes_test", votes_test, 1)
    check_at_least("batch", batch, 1)
    table = read_table(codes, factors, factor_types=factor_types)
    fixed = fixed_factors(table)
    rng = np.random.default_rng(seed)
    train_MD, label_M = difference_table(table.codes, fixed, rng, votes=votes_train, batch=batch)
    test_MD, test_label_M = difference_table(table.codes, fixed, rng, votes=votes_test, batch=batch)
    if len(fixed) == 1:
        return 1.0
    weights = fit_logistic(train_MD, label_M, len(fixed))
    return float((class_scores(weights, test_MD).argmax(axis=1) == test_label_M).mean())


FACTOR_VAE = Metric(
    "factor_vae",
    factor_vae_score,
    "FactorVAE score",
    "How often the latent with the smallest variance identifies the factor that was held constant; 1 is always, "
    "and guessing gets 1 divided by the number of factors.",
    definition="disentanglement_lib: pruned below 0.05",
    rows=None,
    factors=2,  # with one factor the vote is always right
    quick=True,
    test_options={"votes_train": 400, "votes_test": 400, "batch": 16},
)

BETA_VAE = Metric(
    "beta_vae",
    beta_vae_score,
    "beta-VAE score",
    "How often a linear classifier identifies the factor that two groups of observations share; 1 is always.",
    definition="disentanglement_lib: 64 pairs, logistic regression",
    invariant=("permutation", "sign"),
    rows=None,
    factors=2,
    test_options={"votes_train": 400, "votes_test": 200, "batch": 16},
)
