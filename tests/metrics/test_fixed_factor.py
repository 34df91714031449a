"""The FactorVAE and beta-VAE metrics: against stored reference values, and known answers."""

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from raises import raises

from unweave.metrics.fixed_factor import (
    active_codes,
    beta_vae_score,
    difference_table,
    draw_groups,
    draw_partners,
    factor_vae_score,
    fixed_factors,
    majority_accuracy,
    vote_table,
)
from unweave.metrics.inputs import read_table

STORED = Path(__file__).parents[1] / "golden"
EXPECTED = json.loads((STORED / "metrics.json").read_text())["cases"]
EXPECTED_BETA = json.loads((STORED / "predictors.json").read_text())["cases"]
SIZES = np.array([6, 10, 5, 12, 8])  # of the factors in the stored cases
FACTORS = np.stack(np.unravel_index(np.arange(60), (4, 3, 5)), axis=1).repeat(10, axis=0)
CODES = FACTORS + np.random.default_rng(1).normal(scale=0.5, size=(600, 3))
QUICK = {"votes_train": 500, "votes_test": 500, "batch": 8}


def held(factors):
    return fixed_factors(read_table(np.zeros((len(factors), 1)), factors))


def stored(case):
    with np.load(STORED / "metrics.npz") as arrays:
        return arrays[f"{case}/codes"], arrays[f"{case}/factors"]


def whole_grid(case):
    """The representation of a stored case at every combination of its factors: a matrix product of them."""
    codes, factors = stored(case)
    matrix = np.linalg.lstsq(np.column_stack([factors, np.ones(len(factors))]), codes, rcond=None)[0]
    grid = np.stack(np.unravel_index(np.arange(SIZES.prod()), SIZES), axis=1)
    return np.column_stack([grid, np.ones(len(grid))]) @ matrix, grid


@pytest.mark.parametrize("case", EXPECTED)
@pytest.mark.parametrize(("key", "batch"), [("factor_vae", 64), ("factor_vae_batch5", 5)])
def test_score_agrees_with_the_reference(case, key, batch):
    codes, factors = stored(case)
    ours = np.mean([factor_vae_score(codes, factors, batch=batch, seed=seed) for seed in range(3)])
    # Three of the standard deviations between the reference's own ten seeds; where that is 0, equality.
    assert ours == pytest.approx(EXPECTED[case][key]["mean"], abs=3 * EXPECTED[case][key]["std"] + 1e-12)


def one_vote(draw, sizes, factor, variance, batch, rng):
    """A vote as the paper describes it: fresh observations from the sampler, all with one factor value."""
    factors = rng.integers(sizes, size=(batch, len(sizes)))
    factors[:, factor] = factors[0, factor]
    return np.argmin(draw(factors).var(axis=0, ddof=1) / variance)


def test_votes_from_a_table_are_votes_from_the_sampler():
    rng, sizes = np.random.default_rng(2), np.array([4, 3, 5])
    turn = np.linalg.qr(rng.normal(size=(3, 3)))[0] * [1.0, 5.0, 0.3]
    variance = (FACTORS @ turn).var(axis=0, ddof=1)
    fixed = rng.integers(3, size=20_000)
    votes = [one_vote(lambda f: f @ turn, sizes, k, variance, 5, rng) for k in fixed]
    expected = np.bincount(np.array(votes) * 3 + fixed, minlength=9).reshape(3, 3) / 20_000
    codes = FACTORS @ turn
    ours = vote_table(codes, active_codes(codes, rng), held(FACTORS), rng, votes=20_000, batch=5) / 20_000
    assert expected.min(axis=1).max() > 0.01  # not all-or-nothing, so that a wrong sampler would show
    np.testing.assert_allclose(ours, expected, atol=0.015)  # about three standard errors of such a share


def test_groups_share_the_value_and_reach_every_row_that_has_it():
    factor = np.array([2, 0, 2, 1, 0, 2])
    rows = draw_groups(held(factor[:, None])[0], np.array([0, 1, 2]), np.random.default_rng(0), batch=50)
    assert [set(group) for group in rows] == [{1, 4}, {3}, {0, 2, 5}]


def test_values_are_fixed_as_often_as_they_occur():
    """A code that is still at the frequent value only wins as often as this value occurs."""
    factor = np.array([0] * 90 + [1] * 10)
    noise = np.random.default_rng(0).normal(size=(2, 100))
    codes = np.stack([np.where(factor == 0, 0.0, 9 * noise[0]), np.where(factor == 1, 0.0, 9 * noise[1])], axis=1)
    rng = np.random.default_rng(0)
    table = vote_table(codes, active_codes(codes, rng), held(factor[:, None]), rng, votes=2000, batch=8)
    assert table[0, 0] / 2000 == pytest.approx(0.9, abs=0.03)


def test_majority_accuracy_by_hand():
    train = np.array([[8, 1], [3, 4], [0, 0]])
    test = np.array([[5, 2], [1, 1], [1, 0]])  # a code without train votes guesses the first factor
    assert majority_accuracy(train, test) == (5 + 1 + 1) / 10


def test_variance_is_unbiased_and_taken_over_a_subset_of_rows():
    rng = np.random.default_rng(0)
    np.testing.assert_allclose(active_codes(CODES, rng, variance_rows=600).variances, CODES.var(axis=0, ddof=1))
    part = active_codes(CODES, rng, variance_rows=300).variances
    assert not np.allclose(part, CODES.var(axis=0, ddof=1), rtol=1e-6)
    np.testing.assert_allclose(part, CODES.var(axis=0, ddof=1), rtol=0.3)
    assert not len(active_codes(CODES[:1], rng, variance_rows=10).columns)


def test_pruning_drops_nearly_constant_codes():
    codes = np.column_stack([CODES, 0.01 * CODES[:, 0]])
    assert active_codes(codes, np.random.default_rng(0)).columns.tolist() == [0, 1, 2]
    kept = active_codes(codes, np.random.default_rng(0), prune_below=0.0)
    np.testing.assert_allclose(kept.variances, codes.var(axis=0, ddof=1))


@pytest.mark.parametrize("codes", [FACTORS, FACTORS[:, [2, 0, 1]], np.hstack([FACTORS, FACTORS])])
def test_perfect_permuted_and_duplicated_codes_score_one(codes):
    assert factor_vae_score(codes, FACTORS) == 1.0


@pytest.mark.parametrize("constant", [0.0, 0.1, -1e30])
@pytest.mark.parametrize("prune_below", [0.0, 0.05])
def test_constant_codes_never_win(constant, prune_below):
    dead = np.full((600, 2), constant)
    assert factor_vae_score(dead, FACTORS, prune_below=prune_below) == 0.0
    with_dead = factor_vae_score(np.hstack([dead, CODES]), FACTORS, prune_below=prune_below, **QUICK)
    assert with_dead == factor_vae_score(CODES, FACTORS, prune_below=prune_below, **QUICK)


def test_codes_without_information_and_one_code_score_chance():
    noise = np.random.default_rng(0).normal(size=(600, 3))
    assert factor_vae_score(noise, FACTORS) < 0.4
    assert factor_vae_score(FACTORS[:, :1], FACTORS) == pytest.approx(1 / 3, abs=0.03)


def test_one_factor_is_always_guessed():
    assert factor_vae_score(CODES, FACTORS[:, :1], **QUICK) == 1.0


def test_a_factor_with_one_value_is_left_out():
    constant = np.full((600, 1), 7)
    with_constant = factor_vae_score(CODES, np.hstack([constant, FACTORS]), **QUICK)
    assert with_constant == factor_vae_score(CODES, FACTORS, **QUICK)


def test_few_rows():
    assert 0.0 <= factor_vae_score([[0.0, 1.0], [5.0, 1.0]], [[0, 0], [1, 2]], **QUICK) <= 1.0
    with raises("factors"):
        factor_vae_score([[0.0, 1.0]], [[0, 3]])


def test_order_and_positive_scale_of_codes_do_not_matter():
    score = factor_vae_score(CODES, FACTORS, **QUICK)
    assert 0.4 < score < 1.0
    assert factor_vae_score(CODES[:, [1, 2, 0]], FACTORS, **QUICK) == score
    assert factor_vae_score(CODES * [2.0, 3.3, 700.0] + 5.0, FACTORS, **QUICK) == score


def test_seed_decides_and_tensors_are_accepted():
    score = factor_vae_score(CODES, FACTORS, seed=3, **QUICK)
    assert type(score) is float
    assert factor_vae_score(torch.tensor(CODES), torch.tensor(FACTORS), seed=3, **QUICK) == score
    assert factor_vae_score(CODES, FACTORS, seed=4, **QUICK) != score


@pytest.mark.parametrize(
    ("option", "value"),
    [("votes_train", 0), ("votes_test", 0), ("batch", 1), ("variance_rows", 1), ("prune_below", -0.1)],
)
def test_options_out_of_range(option, value):
    with raises(option, value=value):
        factor_vae_score(CODES, FACTORS, **{option: value})


# --- the beta-VAE metric ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("case", EXPECTED_BETA)
@pytest.mark.parametrize(("key", "batch"), [("beta_vae", 64), ("beta_vae_batch5", 5)])
def test_beta_vae_agrees_with_the_reference(case, key, batch):
    ours = np.mean([beta_vae_score(*stored(case), batch=batch, seed=seed) for seed in range(2)])
    expected = EXPECTED_BETA[case][key]
    # Three of the standard deviations between the reference's own ten seeds; where that is 0, equality.
    assert ours == pytest.approx(expected["mean"], abs=3 * expected["std"] + 1e-12)


@pytest.mark.parametrize(
    ("score", "key"), [(beta_vae_score, EXPECTED_BETA["rotation"]["beta_vae_batch5"]),
                       (factor_vae_score, EXPECTED["rotation"]["factor_vae_batch5"])]
)  # fmt: skip
def test_on_the_full_grid_scores_are_within_two_standard_errors(score, key):
    """Ten seeds each. A table of 10,000 rows adds sampling noise, the full grid does not."""
    codes, factors = whole_grid("rotation")
    ours = [score(codes, factors, batch=5, seed=seed) for seed in range(10)]
    error = np.sqrt((np.var(ours, ddof=1) + key["std"] ** 2) / 10)
    assert np.mean(ours) == pytest.approx(key["mean"], abs=2 * error)


def test_partners_share_the_value_and_are_other_rows():
    (only,) = held(np.array([2, 0, 2, 1, 0, 2])[:, None])
    rng = np.random.default_rng(0)
    partners = [set(draw_partners(only, np.full(60, place), rng)) for place in range(6)]
    assert partners == [{2, 5}, {4}, {0, 5}, {3}, {1}, {0, 2}]  # the fourth row has no other row


def test_pairs_from_a_table_are_pairs_from_the_sampler():
    rng, sizes = np.random.default_rng(2), np.array([4, 3, 5])
    turn = np.linalg.qr(rng.normal(size=(3, 3)))[0]
    ours, labels = difference_table(FACTORS @ turn, held(FACTORS), rng, votes=9000, batch=3)
    for k in range(3):
        left, right = rng.integers(sizes, size=(2, 9000, 3))
        right[:, k] = left[:, k]
        expected = np.abs((left - right) @ turn).mean(axis=0)
        np.testing.assert_allclose(ours[labels == k].mean(axis=0), expected, atol=0.06)


def test_beta_vae_known_answers():
    for codes in (FACTORS, FACTORS[:, [2, 0, 1]], np.hstack([FACTORS, FACTORS])):
        assert beta_vae_score(codes, FACTORS, votes_train=1000, votes_test=500) == 1.0
    noise = np.random.default_rng(0).normal(size=(600, 3))
    assert beta_vae_score(noise, FACTORS, **QUICK) == pytest.approx(1 / 3, abs=0.1)
    assert beta_vae_score(np.full((600, 2), 0.1), FACTORS, **QUICK) == pytest.approx(1 / 3, abs=0.1)
    assert beta_vae_score(CODES, FACTORS[:, :1], **QUICK) == 1.0  # there is nothing else to guess


def test_beta_vae_is_decided_by_its_seed():
    score = beta_vae_score(CODES, FACTORS, seed=3, **QUICK)
    assert type(score) is float
    assert beta_vae_score(torch.tensor(CODES), torch.tensor(FACTORS), seed=3, **QUICK) == score
    assert beta_vae_score(CODES, FACTORS, seed=4, **QUICK) != score


@pytest.mark.parametrize("score", [beta_vae_score, factor_vae_score])
def test_missing_values_and_continuous_factors(score):
    factors = FACTORS.astype(float)
    factors[::3, 0], factors[1::3, 2] = np.nan, np.nan
    assert score(FACTORS, factors, **QUICK) > 0.98
    measured = np.random.default_rng(0).uniform(size=(2000, 2))
    assert score(measured, measured, **QUICK) > 0.98  # held within one of 20 bins


@pytest.mark.parametrize(("option", "value"), [("votes_train", 0), ("votes_test", 0), ("batch", 0)])
def test_beta_vae_options_out_of_range(option, value):
    with raises(option, value=value):
        beta_vae_score(CODES, FACTORS, **{option: value})
