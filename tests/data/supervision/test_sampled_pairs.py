"""Frequencies of sampled pairs against their definition."""

import itertools
import math

import pytest
import torch
from drawn import UNEVEN, Codes, Rows, classes, draw, is_uniform, key
from scipy import stats

from unweave.data import explain
from unweave.data.supervision.changed_pairs import choose_factors, draw_factors

# --- pairs ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("k", [1, 2, 3])
def test_exactly_k_factors_change(k):
    batch = draw(Codes(), ("x", "pair", "changed"), f"pairs(k={k})", n=k)
    differs = classes(batch.x) != classes(batch.pair)
    assert (differs.sum(1) == k).all() and (batch.changed == k).all() and not differs[:, 1].any()
    bits = differs[:, [0, 2, 3]].long() @ torch.tensor([4, 2, 1])
    sets = torch.tensor([bin(n).count("1") == k for n in range(8)]).nonzero()[:, 0]
    assert is_uniform(torch.searchsorted(sets, bits), len(sets))


@pytest.mark.parametrize("k, low, high", [("'uniform'", 1, 4), ("(2, 4)", 2, 4), ("[1, 5]", 1, 5), ("(3, 3)", 3, 3)])
def test_a_range_of_k(k, low, high):
    """The number of changed factors is uniform, and so are the sets of each size (chi-square)."""
    batch = draw(Codes((2, 3, 2, 4, 3)), ("x", "pair", "changed"), f"pairs(k={k})", 60_000)
    differs = classes(batch.x) != classes(batch.pair)
    assert torch.equal(differs.sum(1), batch.changed) and is_uniform(batch.changed - low, high - low + 1)
    found = torch.bincount(differs.long() @ torch.tensor([16, 8, 4, 2, 1]), minlength=32).numpy()
    sizes = [bin(n).count("1") for n in range(32)]
    expected = [60_000 / (high - low + 1) / math.comb(5, s) if low <= s <= high else 0.0 for s in sizes]
    possible = [n for n in range(32) if expected[n]]
    assert found[possible].sum() == 60_000
    assert stats.chisquare(found[possible], [expected[n] for n in possible]).pvalue > 1e-3


def test_new_values_are_uniform_over_the_others():
    batch = draw(Codes(), ("x", "pair"), "pairs(k=3)", 40_000, n=2)
    old, new = classes(batch.x), classes(batch.pair)
    for i, size in [(0, 3), (2, 4), (3, 5)]:
        assert is_uniform((new[:, i] - old[:, i]) % size - 1, size - 1) and is_uniform(new[:, i], size)


def test_only_named_factors_change():
    both = draw(Codes(), ("x", "pair", "changed"), "pairs(change=['d', 'a'])")
    differs = classes(both.x) != classes(both.pair)
    assert (differs == torch.tensor([True, False, False, True])).all() and (both.changed == 2).all()
    one = draw(Codes(), ("x", "pair"), "pairs(k=1, change=['d', 'a'])")
    differs = (classes(one.x) != classes(one.pair)).long()
    assert (differs.sum(1) == 1).all() and not differs[:, 1:3].any() and is_uniform(differs[:, 0], 2)


def test_named_factors_are_kept():
    batch = draw(Codes(), ("x", "pair", "changed"), "pairs(k='uniform', share=['c'])")
    differs = classes(batch.x) != classes(batch.pair)
    assert not differs[:, 2].any() and torch.equal(differs.sum(1), batch.changed) and is_uniform(batch.changed - 1, 2)


@pytest.mark.parametrize(
    "data", [Codes(), Rows(list(itertools.product(range(3), [0], range(4), range(5))), (3, 1, 4, 5))]
)
def test_all_other_factors_are_free(data):
    """Uniform over all others with the same class, for a grid and for a table."""
    batch = draw(data, ("x", "pair", "changed"), "pairs(share=['c'])", 40_000)
    x, pair = classes(batch.x)[:, :4], classes(batch.pair)[:, :4]
    assert torch.equal(x[:, 2], pair[:, 2]) and torch.equal((x != pair).sum(1), batch.changed)
    assert (batch.changed >= 1).all()
    offset = ((pair - x) % torch.tensor([3, 1, 4, 5])) @ torch.tensor([5, 0, 0, 1])
    assert is_uniform(offset - 1, 14)


def test_observations_without_partner_are_left_out():
    batch = draw(UNEVEN, ("x", "pair"), "pairs(share=['a'])")
    x, pair = classes(batch.x), classes(batch.pair)
    assert torch.equal(x[:, 0], pair[:, 0]) and (x[:, 2] != pair[:, 2]).all()
    assert is_uniform(x[:, 2] - 1, 9)  # rows 1 to 9: row 0 is the only one of its group, row 10 has no group
    assert "9 of 11 observations are used" in explain("pairs(share=['a'])", UNEVEN)


def test_the_rule_of_disentanglement_lib():
    """One factor or k of them, with equal odds; the value may stay the same."""
    data = Codes((4, 4, 4))
    batch = draw(data, ("x", "pair", "changed"), "pairs(k=3, rule='dlib')", 64_000)
    counts = torch.bincount(batch.changed, minlength=4)
    assert counts[0] == counts[2] == 0 and stats.binomtest(int(counts[1]), 64_000).pvalue > 1e-3
    differs = (classes(batch.x) != classes(batch.pair)).sum(1)
    one = torch.bincount(differs[batch.changed == 1], minlength=4)
    assert stats.binomtest(int(one[0]), int(one.sum()), 1 / 4).pvalue > 1e-3 and not one[2:].any()
    three = torch.bincount(differs[batch.changed == 3], minlength=4).numpy()
    assert stats.chisquare(three, three.sum() * stats.binom.pmf(range(4), 3, 3 / 4)).pvalue > 1e-3
    uniform = draw(data, ("changed",), "pairs(k='uniform', rule='dlib')", 64_000).changed
    assert stats.binomtest(int((uniform == 2).sum()), 64_000, 1 / 4).pvalue > 1e-3 and uniform.max() == 2


def test_choose_and_draw_factors():
    k = torch.tensor([0, 1, 2, 3])
    chosen = choose_factors(key(), k, (0, 2, 3), 4)
    assert torch.equal(chosen.sum(1), k) and not chosen[:, 1].any()
    factors = torch.zeros(4, 4, dtype=torch.int64)
    assert torch.equal(draw_factors(key(), factors, chosen, (3, 1, 4, 5)) != 0, chosen)


# --- match ----------------------------------------------------------------------------------------------------------


def test_pairs_match_in_content_or_style():
    batch = draw(Codes(), ("x", "pair", "shared"), "match(content=['a'], style=['c', 'd'])", 40_000)
    assert is_uniform(batch.shared, 2)
    same = classes(batch.x) == classes(batch.pair)
    content, style = same[batch.shared == 0], same[batch.shared == 1]
    assert content[:, 0].all() and style[:, 2:].all()
    assert not style[:, 0].any()  # a style group has three members, of different content
    # Of the 20 with the same content, the other 19 are equally likely; 4 of them share c.
    assert stats.binomtest(int(content[:, 2].sum()), len(content), 4 / 19).pvalue > 1e-3
    assert torch.equal(
        draw(Codes(), ("x", "pair"), "match(content=['a'])").pair,
        draw(Codes(), ("x", "pair"), "match(content=['a'], style=['c', 'd'])").pair,
    )


def test_match_from_a_table():
    batch = draw(UNEVEN, ("x", "pair", "shared"), "match(content=['a'], style=['b'])")
    x, pair = classes(batch.x), classes(batch.pair)
    column = x.gather(1, batch.shared[:, None]) == pair.gather(1, batch.shared[:, None])
    assert column.all() and (x[:, 2] != pair[:, 2]).all() and is_uniform(x[:, 2] - 1, 9)
