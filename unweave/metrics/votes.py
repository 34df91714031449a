"""Scores by votes: fix one factor, look at which code stays still, and let a classifier guess the factor.

Shape letters: N rows, D codes, K factors, V values of one factor, M votes, B rows per vote.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from unweave.metrics.information import Floats, Indices, Table, as_table, at_least, varying_factors

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


def active_codes(
    codes_ND: Floats, rng: np.random.Generator, *, variance_rows: int = 10_000, prune_below: float = 0.05
) -> Floats:
    """The codes whose standard deviation is at least `prune_below`, each divided by it, [N, active]."""
    at_least("variance_rows", variance_rows, 2)
    at_least("prune_below", prune_below, 0)
    deviation_D = np.sqrt(global_variances(codes_ND, rng, rows=variance_rows))
    active_D = (deviation_D >= prune_below) & (deviation_D > 0)  # nothing can be divided by 0, whatever the threshold
    return codes_ND[:, active_D] / deviation_D[active_D]


def stillest_codes(
    scaled_ND: Floats, factor_N: Indices, rng: np.random.Generator, *, votes: int, batch: int
) -> Indices:
    """The votes of one fixed factor: in each group of rows sharing a value, the code that varies least, [M]."""
    groups = rows_by_value(factor_N)
    # The value of a row drawn uniformly: frequent values are fixed as often as they occur.
    values_M = factor_N[rng.integers(len(factor_N), size=votes)]
    chunk = max(1, _GATHERED // (batch * scaled_ND.shape[1]))
    winners = [np.empty(0, np.int64)]
    for start in range(0, votes, chunk):
        rows_MB = draw_groups(groups, values_M[start : start + chunk], rng, batch=batch)
        winners.append(scaled_ND[rows_MB].var(axis=1, ddof=1).argmin(axis=1))
    return np.concatenate(winners)


def vote_table(scaled_ND: Floats, factors_NK: Indices, rng: np.random.Generator, *, votes: int, batch: int) -> Indices:
    """How often each code was stillest while each factor was fixed, [D, K]; the factor is drawn uniformly."""
    votes_K = np.bincount(rng.integers(factors_NK.shape[1], size=votes), minlength=factors_NK.shape[1])
    counts = [
        np.bincount(stillest_codes(scaled_ND, factor, rng, votes=int(m), batch=batch), minlength=scaled_ND.shape[1])
        for factor, m in zip(factors_NK.T, votes_K, strict=True)
    ]
    return np.stack(counts, axis=1)


def majority_accuracy(train_DK: Indices, test_DK: Indices) -> float:
    """Guess for each code the factor it won most often in `train`; the share of `test` guessed right."""
    guess_D = train_DK.argmax(axis=1)
    return float(test_DK[np.arange(len(guess_D)), guess_D].sum() / test_DK.sum())


def factor_vae_score(
    codes: Table,
    factors: Table,
    *,
    votes_train: int = 10_000,
    votes_test: int = 5_000,
    batch: int = 64,
    variance_rows: int = 10_000,
    prune_below: float = 0.05,
    seed: int = 0,
) -> float:
    """The FactorVAE metric (Kim & Mnih 2018, section 4, https://arxiv.org/abs/1802.05983), in 0..1.

    A vote fixes one factor, draws `batch` rows of the table that agree in it, and goes to the code
    with the smallest variance there relative to its variance overall. Codes with an overall standard
    deviation below `prune_below` do not stand; if none is left the score is 0.
    """
    at_least("votes_train", votes_train, 1)
    at_least("votes_test", votes_test, 1)
    at_least("batch", batch, 2)
    codes_ND, factors_NK = as_table(codes, factors)
    factors_NK = factors_NK[:, varying_factors(factors_NK)]
    rng = np.random.default_rng(seed)
    scaled_ND = active_codes(codes_ND, rng, variance_rows=variance_rows, prune_below=prune_below)
    if not scaled_ND.shape[1]:
        return 0.0
    train_DK = vote_table(scaled_ND, factors_NK, rng, votes=votes_train, batch=batch)
    test_DK = vote_table(scaled_ND, factors_NK, rng, votes=votes_test, batch=batch)
    return majority_accuracy(train_DK, test_DK)
