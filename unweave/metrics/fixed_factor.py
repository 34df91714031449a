"""Scores by votes: fix one factor, look at which codes stay still, and let a classifier guess the factor.

Shape letters: N rows, D codes, K factors, V values of one factor, M votes, B rows (or pairs of rows) per vote.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

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


class RowsByValue(NamedTuple):
    """The rows of a table sorted by one factor, so that rows sharing a value lie side by side."""

    order_N: Indices
    first_V: Indices
    count_V: Indices


def rows_by_value(factor_N: Indices) -> RowsByValue:
    count_V = np.bincount(factor_N)
    order_N = np.argsort(factor_N, kind="stable")
    return RowsByValue(order_N, np.cumsum(count_V) - count_V, count_V)


def draw_groups(groups: RowsByValue, values_M: Indices, rng: np.random.Generator, *, batch: int) -> Indices:
    """For each value, `batch` rows that have it, drawn with replacement, [M, B]."""
    within_MB = rng.integers(groups.count_V[values_M][:, None], size=(len(values_M), batch))
    rows_MB: Indices = groups.order_N[groups.first_V[values_M][:, None] + within_MB]
    return rows_MB


def global_variances(codes_ND: Floats, rng: np.random.Generator, *, rows: int) -> Floats:
    """Variance of each code over at most `rows` rows, [D]; zero where a single row is all there is."""
    if len(codes_ND) > rows:
        codes_ND = codes_ND[rng.choice(len(codes_ND), rows, replace=False, shuffle=False)]
    if len(codes_ND) == 1:
        return np.zeros(codes_ND.shape[1])
    # A constant whose mean is not exact has a variance of rounding errors; its range is exactly 0.
    return np.where(np.ptp(codes_ND, axis=0) > 0, codes_ND.var(axis=0, ddof=1), 0.0)


class Standing(NamedTuple):
    """The codes that may win votes."""

    columns: Indices  # of the table
    variances: Floats  # of these codes over the whole table


def standing_codes(
    codes_ND: Floats, rng: np.random.Generator, *, variance_rows: int = 10_000, prune_below: float = 0.05
) -> Standing:
    """The codes whose standard deviation is at least `prune_below`."""
    check_at_least("variance_rows", variance_rows, 2)
    check_at_least("prune_below", prune_below, 0)
    variance_D = global_variances(codes_ND, rng, rows=variance_rows)
    # Nothing can be divided by 0, whatever the threshold.
    columns = np.flatnonzero((np.sqrt(variance_D) >= prune_below) & (variance_D > 0))
    return Standing(columns, variance_D[columns])


class Fixed(NamedTuple):
    """One factor that votes may hold fixed."""

    rows: Indices  # of the table, where the factor is present [n]
    labels: Indices  # its classes there [n]
    groups: RowsByValue  # places in `rows`
    inside: Indices  # where in its group each of them lies [n]


def fixed_factors(table: MetricInputs) -> list[Fixed]:
    """The factors that vary; a continuous one is held within one of 20 equal-width bins."""
    found = (classes(table, k) for k in varying_factors(table))
    return [_fixed(rows, labels) for rows, labels in found]


def _fixed(rows_n: Indices, labels_n: Indices) -> Fixed:
    groups = rows_by_value(labels_n)
    inside_n = np.empty_like(rows_n)
    inside_n[groups.order_N] = np.arange(len(rows_n)) - np.repeat(groups.first_V, groups.count_V)
    return Fixed(rows_n, labels_n, groups, inside_n)


def stillest_codes(
    codes_ND: Floats, standing: Standing, fixed: Fixed, rng: np.random.Generator, *, votes: int, batch: int
) -> Indices:
    """The votes of one fixed factor: in each group sharing a value, the standing code that varies least, [M]."""
    # The value of a row drawn uniformly: frequent values are fixed as often as they occur.
    values_M = fixed.labels[rng.integers(len(fixed.labels), size=votes)]
    chunk = max(1, _GATHERED // (batch * codes_ND.shape[1]))
    winners = [np.empty(0, np.int64)]
    for start in range(0, votes, chunk):
        places_MB = draw_groups(fixed.groups, values_M[start : start + chunk], rng, batch=batch)
        drawn_MBD = codes_ND[fixed.rows[places_MB]]
        if len(standing.columns) < codes_ND.shape[1]:
            drawn_MBD = drawn_MBD[:, :, standing.columns]
        drawn_MBD -= drawn_MBD[:, :1]  # so that a code that stands still has variance 0, not a rounding error
        winners.append((drawn_MBD.var(axis=1, ddof=1) / standing.variances).argmin(axis=1))
    return np.concatenate(winners)


def vote_table(
    codes_ND: Floats, standing: Standing, factors: list[Fixed], rng: np.random.Generator, *, votes: int, batch: int
) -> Indices:
    """How often each standing code was stillest while each factor was fixed, [D, K]; the factor is drawn uniformly."""
    votes_K = np.bincount(rng.integers(len(factors), size=votes), minlength=len(factors))
    winners = [
        stillest_codes(codes_ND, standing, fixed, rng, votes=int(m), batch=batch)
        for fixed, m in zip(factors, votes_K, strict=True)
    ]
    return np.stack([np.bincount(won, minlength=len(standing.columns)) for won in winners], axis=1)


def majority_accuracy(train_DK: Indices, test_DK: Indices) -> float:
    """Guess for each code the factor it won most often in `train`; the share of `test` guessed right."""
    guess_D = train_DK.argmax(axis=1)
    return float(test_DK[np.arange(len(guess_D)), guess_D].sum() / test_DK.sum())


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

    A vote fixes one factor, draws `batch` rows of the table that agree in it, and goes to the code
    with the smallest variance there relative to its variance overall. Codes with an overall standard
    deviation below `prune_below` do not stand; if none is left the score is 0.
    """
    check_at_least("votes_train", votes_train, 1)
    check_at_least("votes_test", votes_test, 1)
    check_at_least("batch", batch, 2)
    table = read_table(codes, factors, factor_types=factor_types)
    fixed = fixed_factors(table)
    rng = np.random.default_rng(seed)
    standing = standing_codes(table.codes, rng, variance_rows=variance_rows, prune_below=prune_below)
    if not len(standing.columns):
        return 0.0
    train_DK = vote_table(table.codes, standing, fixed, rng, votes=votes_train, batch=batch)
    test_DK = vote_table(table.codes, standing, fixed, rng, votes=votes_test, batch=batch)
    return majority_accuracy(train_DK, test_DK)


def draw_partners(fixed: Fixed, places_n: Indices, rng: np.random.Generator) -> Indices:
    """For each place another one with the same value of the factor; the same place if it is the only one."""
    labels_n = fixed.labels[places_n]
    count_n = fixed.groups.count_V[labels_n]
    first_n = fixed.groups.first_V[labels_n]
    within_n = rng.integers(np.maximum(count_n - 1, 1))
    # One place short of the group: what falls on the row itself, or after it, moves on by one.
    within_n += (count_n > 1) & (within_n >= fixed.inside[places_n])
    partners: Indices = fixed.groups.order_N[first_n + within_n]
    return partners


def differences(codes_ND: Floats, fixed: Fixed, rng: np.random.Generator, *, votes: int, batch: int) -> Floats:
    """How far apart each code is in pairs of rows that share one factor, mean over the pairs of a vote, [M, D]."""
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
    """Votes [M, D] and which factor each held fixed [M]; the factor is drawn uniformly."""
    votes_K = np.bincount(rng.integers(len(factors), size=votes), minlength=len(factors))
    found = [differences(codes_ND, fixed, rng, votes=int(m), batch=batch) for fixed, m in zip(factors, votes_K)]
    return np.concatenate(found), np.repeat(np.arange(len(factors)), votes_K)


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

    A vote draws `batch` pairs of rows that agree in one factor, and takes the mean absolute difference of each
    code over the pairs; a linear classifier guesses the factor. The score is its accuracy on other votes.
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
