"""Intervals by resampling: as wide as fresh draws of the data vary, and cheap."""

import numpy as np
import pytest

from unweave.errors import UserError
from unweave.metrics.histogram_mi import bin_table, count_binned, information_from_counts
from unweave.metrics.information import mig_from_information, mig_score, modularity_from_information
from unweave.metrics.inputs import read_table, select_rows
from unweave.metrics.resample import bootstrap_counts, bootstrap_interval, bootstrap_rows, bootstrap_weights


def fresh(seed, rows=1500):
    rng = np.random.default_rng(seed)
    factors = rng.integers([4, 3], size=(rows, 2))
    return factors + rng.normal(scale=0.4, size=(rows, 2)), factors


def test_weights_are_draws_with_replacement():
    weights = list(bootstrap_weights(50, 3, seed=1))
    assert all(w.sum() == 50 and (w >= 0).all() for w in weights) and not np.array_equal(weights[0], weights[1])
    assert np.array_equal(weights[2], list(bootstrap_weights(50, 3, seed=1))[2])


def test_weighted_counts_are_the_counts_of_the_drawn_rows():
    table = read_table(*fresh(0, 200))
    found = bootstrap_counts(
        bin_table(table), {"mig": mig_from_information, "modularity": modularity_from_information}, resamples=2, seed=5
    )
    weights = next(bootstrap_weights(200, 1, seed=5)).astype(int)
    drawn = select_rows(table, np.repeat(np.arange(200), weights))
    # The bins are those of the full table; those of a resampled table without the extremes would differ.
    drawn = drawn._replace(codes=np.vstack([drawn.codes]))
    binned = bin_table(table)
    rows = np.repeat(np.arange(200), weights)
    tables = [np.zeros_like(t) for t in count_binned(binned).tables]
    for place, k in enumerate((0, 1)):
        for d in (0, 1):
            np.add.at(tables[place][d], (binned.bins_DN[d][rows], binned.classes[k][rows]), 1)
    assert found["mig"][0] == pytest.approx(
        mig_from_information(information_from_counts(count_binned(binned)._replace(tables=tuple(tables))))
    )


def test_intervals_are_as_wide_as_fresh_tables_vary():
    scores = np.array([mig_score(*fresh(seed)) for seed in range(60)])
    table = read_table(*fresh(0))
    found = bootstrap_counts(bin_table(table), {"mig": mig_from_information}, resamples=200, seed=0)["mig"]
    low, high = bootstrap_interval(scores[0], found, 0.0, 1.0)
    assert low < scores[0] < high
    assert (high - low) == pytest.approx(2 * 1.96 * scores.std(), rel=0.35)
    covered = [low - scores[0] <= s - scores.mean() <= high - scores[0] for s in scores]
    assert np.mean(covered) > 0.85


def test_intervals_stay_inside_the_range_and_need_numbers():
    assert bootstrap_interval(0.99, np.array([0.9, 1.0, 1.1]), 0.0, 1.0)[1] == 1.0
    assert (
        bootstrap_interval(0.5, np.array([0.1, 0.2, 0.3]), np.inf, 0.0)[0] < 0.5
    )  # lower is better: the range turned round
    assert bootstrap_interval(0.5, np.array([np.nan, 0.5]), 0.0, 1.0) is None


def test_rows_are_drawn_for_scores_without_counts():
    table = read_table(*fresh(0, 100))

    def mean(drawn, number):
        if number == 1:
            raise UserError("factors: no column varies")
        return {"mean": float(drawn.codes.mean())}

    found = bootstrap_rows(table, mean, resamples=30, seed=0)["mean"]
    assert len(found) == 29
    assert found.std() == pytest.approx(table.codes.mean(axis=1).std() / 10, rel=0.5)
