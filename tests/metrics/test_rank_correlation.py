"""Agreement between metrics: compared with scipy; missing and constant scores."""

import doctest

import numpy as np
import pandas as pd
import pytest
from raises import raises
from scipy.stats import spearmanr

from unweave.metrics import agreement as public
from unweave.metrics.rank_correlation import agreement

RNG = np.random.default_rng(0)
SCORES = {name: RNG.normal(size=20).round(1) for name in ("mig", "dci.disentanglement", "sap")}  # with ties


@pytest.mark.parametrize(
    "table", [SCORES, pd.DataFrame(SCORES), [dict(zip(SCORES, row)) for row in zip(*SCORES.values())]]
)
def test_correlations_are_those_of_scipy(table):
    found = agreement(table)
    assert found.names == tuple(SCORES)
    expected = spearmanr(np.column_stack(list(SCORES.values()))).statistic
    np.testing.assert_allclose(found.correlation, expected, atol=1e-10)
    assert (found.models == 20).all()


def test_models_without_a_score_are_left_out_of_its_pairs_only():
    scores = {"a": [1, 2, 3, 4, 5], "b": [5, None, 3, float("nan"), 1], "c": [1, 2, 3, 5, 4]}
    found = agreement(scores)
    assert found.models.tolist() == [[5, 3, 5], [3, 3, 3], [5, 3, 5]]
    assert found.correlation[0, 1] == -1.0 and found.correlation[0, 2] == pytest.approx(0.9)
    ragged = agreement([{"a": 1, "b": 2}, {"a": 2}, {"a": 3, "b": 1}])
    assert ragged.models[0, 1] == 2 and ragged.correlation[0, 1] == 0.0  # two models order nothing


def test_constant_scores_have_correlation_zero():
    found = agreement({"a": [1, 1, 1, 1], "b": [1, 2, 3, 4]})
    assert found.correlation.tolist() == [[1.0, 0.0], [0.0, 1.0]]


@pytest.mark.parametrize(
    "table",
    [
        {},
        [],
        {"a": [1, 2], "b": [1]},
        {"a": ["x", "y"]},
        ["mig"],
        3,
    ],
)
def test_invalid_tables(table):
    with raises("scores_table"):
        agreement(table)


def test_it_is_public_and_its_example_holds():
    assert public is agreement
    import sys

    result = doctest.testmod(sys.modules["unweave.metrics.rank_correlation"])
    assert result.attempted > 0 and result.failed == 0
