"""Groups of observations that share many factors: the number of combinations exceeds 64 bits."""

import numpy as np
import pytest
import torch

from unweave.data import Sampler, explain, load_data

GROUPS = 256  # of two rows each, in the tables below
NEEDS = {"groups": ("groups", "group_id"), "pairs": ("x", "pair"), "triplets": ("x", "positive", "negative")}


def byte_columns():
    """Nine columns of 256 values. Half of the groups differ in the first column only."""
    table = np.zeros((2 * GROUPS, 9), np.int64)
    table[:GROUPS, 0] = np.arange(GROUPS)
    table[GROUPS:, 1:] = np.arange(GROUPS)[:, None]
    table[GROUPS] = 7  # not a second group of zeros
    return np.repeat(table, 2, axis=0)


def attributes():
    """85 binary columns, as in Animals with Attributes. Most groups differ in the first eight columns only."""
    table = np.zeros((GROUPS, 85), np.int64)
    table[:, :8] = np.arange(GROUPS)[:, None] >> np.arange(8) & 1
    table[-1, 8:] = 1
    return np.repeat(table, 2, axis=0)


def dataset(table):
    names = [f"f{k}" for k in range(table.shape[1])]
    pixels = np.random.default_rng(0).integers(0, 255, (len(table), 1, 16, 16)).astype(np.uint8)
    return load_data(pixels, factors=table, names=names), names


@pytest.mark.parametrize("make", [byte_columns, attributes])
def test_groups_of_many_factors_do_not_merge(make):
    """Members of a group share all its factors, whatever the number of combinations (A12)."""
    table = make()
    data, names = dataset(table)
    text = f"groups(by={names}, size=2)"
    plan = Sampler(data, NEEDS["groups"], text).plan(torch.tensor(1), 400)
    first, second = plan["groups"].T.numpy()
    assert (first != second).all() and (table[first] == table[second]).all()
    assert f"{len(np.unique(table, axis=0))} groups" in explain(text, data)


@pytest.mark.parametrize("text", ["pairs(share={})", "triplets(by={})"])
def test_pairs_and_triplets_of_many_factors(text):
    """A pair shares all given factors, and the negative of a triplet does not (A12)."""
    table = attributes()
    data, names = dataset(table)
    needs = NEEDS[text.partition("(")[0]]
    plan = Sampler(data, needs, text.format(names)).plan(torch.tensor(1), 400)
    x, other, *negative = (plan[name].numpy() for name in needs)
    assert (table[x] == table[other]).all()
    assert all((table[x] != table[rows]).any(1).all() for rows in negative)


def test_pairs_that_match_in_all_other_factors():
    """The default style of `match` is all other factors, which may be many (A12)."""
    table = np.hstack([np.arange(2 * GROUPS)[:, None] % 2, attributes()])
    data, names = dataset(table)
    plan = Sampler(data, ("x", "pair", "shared"), f"match(content=['{names[0]}'])").plan(torch.tensor(1), 400)
    x, pair, style = plan["x"].numpy(), plan["pair"].numpy(), plan["shared"].numpy() == 1
    assert style.any() and (table[x][style] == table[pair][style])[:, 1:].all()
    assert (table[x][~style] == table[pair][~style])[:, 0].all()


def test_a_row_with_an_unknown_factor_is_in_no_group():
    """Rows that lack one of many factors are in no group, and the other groups keep their members (A12)."""
    table = attributes().astype(float)
    table[:128, 3] = np.nan
    data, names = dataset(table)
    text = f"groups(by={names}, size=2)"
    rows = Sampler(data, NEEDS["groups"], text).plan(torch.tensor(2), 400)["groups"].numpy()
    assert rows.min() >= 128 and (table[rows[:, 0]] == table[rows[:, 1]]).all()
    assert f"{GROUPS - 64} groups" in explain(text, data)
