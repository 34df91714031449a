"""Frequencies of sampled groups, triplets and orders against their definition."""

import itertools

import torch
from drawn import UNEVEN, Codes, classes, draw, is_uniform, key
from scipy import stats

from unweave.data import Digits, Sampler, explain
from unweave.data.user.arrays import Arrays

# --- groups ---------------------------------------------------------------------------------------------------------


def test_groups_share_factors_and_contain_different_observations():
    data = Codes()
    batch = draw(data, ("groups", "group_id"), "groups(by=['a', 'c'], size=3)", 30_000)
    members = classes(batch.groups)
    assert batch.groups.shape == (30_000, 3, 4, 1, 1)
    assert torch.equal(members[:, :, [0, 2]], members[:, :1, [0, 2]].expand(-1, 3, 2))
    assert torch.equal(batch.group_id, members[:, 0, 0] * 4 + members[:, 0, 2]) and is_uniform(batch.group_id, 12)
    ordered = members[:, :, 3] @ torch.tensor([25, 5, 1])
    allowed = torch.tensor([a * 25 + b * 5 + c for a, b, c in itertools.permutations(range(5), 3)])
    assert is_uniform(torch.searchsorted(allowed, ordered), 60)  # every order of every set of three of the five


def test_small_groups_of_a_table_are_left_out():
    batch = draw(UNEVEN, ("groups", "group_id"), "groups(by=['a'], size=3)", 20_000)
    members = classes(batch.groups)
    assert (members[:, :, 0] == members[:, :1, 0]).all()
    assert is_uniform(batch.group_id, 2) and torch.equal(batch.group_id, members[:, 0, 0] - 2)
    rows = members[:, :, 2].sort(1).values
    assert (rows.diff(dim=1) > 0).all()
    assert is_uniform(members[members[:, 0, 0] == 3][:, 0, 2] - 6, 4)
    assert "2 groups; 2 " in explain("groups(by=['a'], size=3)", UNEVEN)


def test_distinct_groups():
    sampler = Sampler(Codes(), ("group_id",), "groups(by=['a', 'c'], size=2, distinct=True)")
    found = torch.stack([sampler(key(n), 12).group_id for n in range(50)])
    assert torch.equal(found.sort(1).values, torch.arange(12).expand(50, 12)) and len(found.unique(dim=0)) == 50


def test_groups_of_digits():
    batch = draw(Digits(), ("groups", "group_id"), "groups(by=['digit'], size=20)", 64)
    assert batch.groups.shape == (64, 20, 1, 8, 8)
    plan = Sampler(Digits(), ("groups",), "groups(by=['digit'], size=20)").plan(key(1), 64)
    digits = Digits().factors(plan["groups"].flatten()).reshape(64, 20)
    assert torch.equal(digits, batch.group_id[:, None].expand(64, 20))


# --- triplets and order ---------------------------------------------------------------------------------------------


def test_triplets():
    batch = draw(Codes(), ("x", "positive", "negative"), "triplets(by=['a', 'd'])", 30_000)
    x, near, far = classes(batch.x), classes(batch.positive), classes(batch.negative)
    assert torch.equal(x[:, [0, 3]], near[:, [0, 3]]) and (x != near).any(1).all()
    assert (x[:, [0, 3]] != far[:, [0, 3]]).any(1).all()
    pair = lambda f: f[:, 0] * 5 + f[:, 3]  # noqa: E731
    assert is_uniform((pair(far) - pair(x)) % 15 - 1, 14) and is_uniform(Codes().index(far), 60)


def test_triplets_from_a_table():
    batch = draw(UNEVEN, ("x", "positive", "negative"), "triplets(by=['a'])", 30_000)
    x, near, far = classes(batch.x), classes(batch.positive), classes(batch.negative)
    assert torch.equal(x[:, 0], near[:, 0]) and (x[:, 2] != near[:, 2]).all()
    assert (x[:, 0] != far[:, 0]).all() and (far[:, 0] >= 0).all()
    assert is_uniform(far[x[:, 0] == 3][:, 2], 6)  # rows 0 to 5 are of another group


def test_order():
    batch = draw(Codes(), ("x", "x_other", "order"), "rank(factor='d')")
    assert torch.equal(batch.order, (classes(batch.x)[:, 3] - classes(batch.x_other)[:, 3]).sign())
    assert stats.chisquare(torch.bincount(batch.order + 1).numpy(), [8000, 4000, 8000]).pvalue > 1e-3
    heights = torch.rand(100, generator=torch.Generator().manual_seed(0))
    data = Arrays(heights.reshape(100, 1, 1, 1), heights[:, None].numpy(), names=["height"])
    taller = draw(data, ("x", "x_other", "order"), "rank(factor='height')", 500)
    assert data.factor_sizes[0] < 100 and torch.equal(taller.order, (taller.x - taller.x_other).sign().long().flatten())
    known = draw(UNEVEN, ("x", "x_other", "order"), "rank(factor='a')")
    assert (classes(known.x)[:, 0] >= 0).all() and (classes(known.x_other)[:, 0] >= 0).all()
