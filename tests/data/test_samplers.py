"""Every kind of supervision against its definition, by counting what is drawn."""

import itertools
import math

import pytest
import torch
from scipy import stats
from torch.fx.experimental.proxy_tensor import make_fx

from unweave.contract import Batch, DataInfo
from unweave.data import Dataset, Digits, Sampler, explain, load_data, supervised_info
from unweave.data.arrays import Arrays
from unweave.data.pairing import change_factors, choose_factors
from unweave.data.shuffle import permuted, without_repetition
from unweave.ops.noise import fold


class Codes(Dataset):
    """A grid whose images are its factor classes, so that a batch can be read back."""

    def __init__(self, sizes=(3, 1, 4, 5)):
        super().__init__()
        self.name, self.factor_sizes, self.size = "codes", tuple(sizes), math.prod(sizes)
        self.factor_names, self.shape = tuple("abcdef"[: len(sizes)]), (len(sizes), 1, 1)
        self.factor_values = tuple(tuple(map(float, range(size))) for size in sizes)
        self.options = {}

    def images(self, index_B):
        return self.factors(index_B).float()[..., None, None]


class Rows(Codes):
    """Any list of factor classes, -1 for unknown: no grid. Images are the classes and the number of the row."""

    grid = False

    def __init__(self, rows, sizes):
        super().__init__(sizes)
        self.size, self.shape = len(rows), (len(sizes) + 1, 1, 1)
        self.register_buffer("rows_NK", torch.tensor(rows), persistent=False)

    def factors(self, index_B):
        return self.rows_NK[index_B]

    def images(self, index_B):
        return torch.cat([self.factors(index_B), index_B[:, None]], 1).float()[..., None, None]


# Groups of a: 0 has 1 row, 1 has 2, 2 has 3, 3 has 4; one row is in none.
UNEVEN = Rows([[a, i % 2] for a in range(4) for i in range(a + 1)] + [[-1, 0]], (4, 2))


class Film(Codes):
    """Three videos of six frames."""

    grid, frames = False, 6

    def __init__(self):
        super().__init__((3, 6))


def key(n=0):
    return torch.tensor(n)


def classes(x):
    return x[..., 0, 0].long()


def is_uniform(values, size):
    counts = torch.bincount(values.flatten(), minlength=size)
    assert len(counts) == size
    return size == 1 or stats.chisquare(counts.numpy()).pvalue > 1e-3


def draw(data, needs, supervision, count=20_000, n=1, seed=0):
    return Sampler(data, needs, supervision, seed=seed)(key(n), count)


# --- what every batch has in common ---------------------------------------------------------------------------------

KINDS = [
    ("none", ("x", "second", "number"), Codes()),
    ("labels(n=7, factors=['c'], noise=0.3, bins=2, permute=True)", ("x", "labelled", "labels"), Codes()),
    ("labels(n=8, factors=['c'], balanced=True)", ("labelled", "labels"), Codes()),
    ("pairs(k='uniform')", ("x", "second", "pair", "changed"), Codes()),
    ("pairs(k=2, share=['a'], rule='dlib')", ("x", "pair", "changed"), Codes()),
    ("pairs(share=['a'])", ("x", "pair", "changed"), UNEVEN),
    ("groups(by=['a', 'c'], size=3)", ("groups", "group_id"), Codes()),
    ("groups(by=['a'], size=2, distinct=True)", ("x", "groups"), UNEVEN),
    ("match(content=['a'])", ("x", "pair", "shared"), Codes()),
    ("match(content=['a'], style=['b'])", ("x", "pair", "shared"), UNEVEN),
    ("triplets(by=['c'])", ("x", "positive", "negative"), Codes()),
    ("triplets(by=['a'])", ("x", "positive", "negative"), UNEVEN),
    ("rank(factor='d')", ("x", "second", "order"), Codes()),
    ("clips(length=3, stride=2)", ("x", "clips"), Film()),
]
every_kind = pytest.mark.parametrize("supervision, needs, data", KINDS, ids=[row[0] for row in KINDS])


@every_kind
def test_exactly_the_needed_fields(supervision, needs, data):
    batch = draw(data, needs, supervision, 2)
    assert {name for name in Batch._fields if getattr(batch, name) is not None} == set(needs)
    assert all(len(getattr(batch, name)) == 2 for name in needs)
    counts = [getattr(batch, n) for n in ("labels", "changed", "group_id", "shared", "order", "number")]
    assert all(t is None or t.dtype == torch.int64 for t in counts)


@every_kind
def test_same_key_same_batch_other_key_other_batch(supervision, needs, data):
    sampler = Sampler(data, needs, supervision)
    one, again, other = (sampler.plan(key(n), 2) for n in (5, 5, 6))
    assert all(torch.equal(one[name], again[name]) for name in needs)
    more = [sampler.plan(key(n), 2) for n in range(20)]
    assert any(not torch.equal(one[name], m[name]) for name in needs for m in (other, *more))


def tensors_of(thing):
    """The addresses of all tensors an object holds, and those it holds hold."""
    if isinstance(thing, torch.Tensor):
        return {thing.data_ptr()}
    inside = thing.values() if isinstance(thing, dict) else thing if isinstance(thing, tuple) else None
    if inside is None:
        inside = list(getattr(thing, "__dict__", {}).values())
    return set().union(*(tensors_of(t) for t in inside))


@every_kind
def test_can_be_recorded_and_mapped(supervision, needs, data):
    """Keys and seeds may be tensors nobody knows the value of, many at once; separate calls give the same.

    Every constant of the record is a table made beforehand: one made in the call would be copied from the host,
    which on a GPU cannot be recorded.
    """
    sampler = Sampler(data, needs, supervision)

    def drawn(one_key, seed):
        plan = sampler.plan(one_key, 2, seed)
        return tuple(plan[name] for name in needs)

    recorded = make_fx(torch.vmap(drawn))(torch.tensor([1, 2]), torch.tensor([3, 4]))
    mapped = recorded(torch.tensor([9, 10]), torch.tensor([7, 8]))
    for row, one_key in enumerate((9, 10)):
        separate = drawn(key(one_key), key(7 + row))
        assert all(torch.equal(a[row], b) for a, b in zip(mapped, separate, strict=True))
    constants = [getattr(recorded, node.target) for node in recorded.graph.nodes if node.op == "get_attr"]
    assert all(constant.data_ptr() in tensors_of(sampler) for constant in constants)


@pytest.mark.parametrize("name, text", [("rooms(size=8)", "pairs(k=1)"), ("digits", "pairs(share=['digit'])")])
def test_real_sets(cache, name, text):
    data = load_data(name)
    sampler = Sampler(data, ("x", "pair", "number"), text)
    batch = sampler(key(), 16)
    assert batch.x.shape == batch.pair.shape == (16, *data.shape)
    assert torch.equal(data.images(batch.number), batch.x)
    mapped = torch.vmap(lambda one_key: tuple(sampler(one_key, 16))[:1])(torch.tensor([0, 1]))
    assert torch.equal(mapped[0][0], batch.x)


# --- none: also what earlier versions drew ---------------------------------------------------------------------------


def test_batches_are_the_same_as_ever():
    """Written down from the first version: a run config must mean the same batches for ever."""
    numbers = {
        "none": [("x", [6, 33, 10, 53, 31, 15]), ("second", [22, 23, 27, 23, 9, 39])],
        "pairs(k=1)": [("x", [6, 33, 10, 53, 31, 15]), ("pair", [1, 13, 14, 33, 11, 18]), ("changed", [1] * 6)],
        "pairs(k=2)": [("pair", [41, 11, 54, 38, 10, 3])],
        "pairs(k='uniform')": [("pair", [1, 11, 14, 38, 10, 3]), ("changed", [1, 2, 1, 2, 2, 2])],
    }
    for supervision, fields in numbers.items():
        plan = Sampler(Codes(), tuple(name for name, _ in fields), supervision).plan(key(7), 6)
        assert all(plan[name].tolist() == expected for name, expected in fields), supervision


def test_observations_are_uniform_and_batches_independent():
    data = Codes()
    batch = draw(data, ("x", "second", "number"), "none", 60_000, n=3)
    first, second = data.index(classes(batch.x)), data.index(classes(batch.second))
    assert is_uniform(first, 60) and is_uniform(second, 60) and torch.equal(first, batch.number)
    together = torch.bincount(first * 60 + second, minlength=3600).reshape(60, 60)
    assert stats.chi2_contingency(together.numpy()).pvalue > 1e-3


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
def test_a_range_of_k_matches_the_definition(k, low, high):
    """The set of changed factors has the paper's distribution: size uniform, then sets of it uniform (chi-square)."""
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
def test_sharing_alone_leaves_the_rest_free(data):
    """By arithmetic in a grid and by a table elsewhere: uniform over all others with the same class."""
    batch = draw(data, ("x", "pair", "changed"), "pairs(share=['c'])", 40_000)
    x, pair = classes(batch.x)[:, :4], classes(batch.pair)[:, :4]
    assert torch.equal(x[:, 2], pair[:, 2]) and torch.equal((x != pair).sum(1), batch.changed)
    assert (batch.changed >= 1).all()
    offset = ((pair - x) % torch.tensor([3, 1, 4, 5])) @ torch.tensor([5, 0, 0, 1])
    assert is_uniform(offset - 1, 14)


def test_sharing_leaves_out_what_has_no_partner():
    batch = draw(UNEVEN, ("x", "pair"), "pairs(share=['a'])")
    x, pair = classes(batch.x), classes(batch.pair)
    assert torch.equal(x[:, 0], pair[:, 0]) and (x[:, 2] != pair[:, 2]).all()
    assert is_uniform(x[:, 2] - 1, 9)  # rows 1 to 9: row 0 is alone in its group, row 10 has none
    assert "9 of 11 observations take part" in explain("pairs(share=['a'])", UNEVEN)


def test_the_habit_of_disentanglement_lib():
    """One factor or k of them with equal odds, and the value may stay."""
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


def test_the_pure_parts():
    k = torch.tensor([0, 1, 2, 3])
    chosen = choose_factors(key(), k, (0, 2, 3), 4)
    assert torch.equal(chosen.sum(1), k) and not chosen[:, 1].any()
    factors = torch.zeros(4, 4, dtype=torch.int64)
    assert torch.equal(change_factors(key(), factors, chosen, (3, 1, 4, 5)) != 0, chosen)


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


# --- groups ---------------------------------------------------------------------------------------------------------


def test_groups_share_the_named_factors_and_hold_different_observations():
    data = Codes()
    batch = draw(data, ("groups", "group_id"), "groups(by=['a', 'c'], size=3)", 30_000)
    members = classes(batch.groups)
    assert batch.groups.shape == (30_000, 3, 4, 1, 1)
    assert torch.equal(members[:, :, [0, 2]], members[:, :1, [0, 2]].expand(-1, 3, 2))
    assert torch.equal(batch.group_id, members[:, 0, 0] * 4 + members[:, 0, 2]) and is_uniform(batch.group_id, 12)
    ordered = members[:, :, 3] @ torch.tensor([25, 5, 1])
    allowed = torch.tensor([a * 25 + b * 5 + c for a, b, c in itertools.permutations(range(5), 3)])
    assert is_uniform(torch.searchsorted(allowed, ordered), 60)  # every order of every set of three of the five


def test_groups_of_a_table_leave_out_small_ones():
    batch = draw(UNEVEN, ("groups", "group_id"), "groups(by=['a'], size=3)", 20_000)
    members = classes(batch.groups)
    assert (members[:, :, 0] == members[:, :1, 0]).all()
    assert is_uniform(batch.group_id, 2) and torch.equal(batch.group_id, members[:, 0, 0] - 2)
    rows = members[:, :, 2].sort(1).values
    assert (rows.diff(dim=1) > 0).all()
    assert is_uniform(members[members[:, 0, 0] == 3][:, 0, 2] - 6, 4)
    assert "2 groups; 2 smaller ones are left out" in explain("groups(by=['a'], size=3)", UNEVEN)


def test_distinct_groups():
    sampler = Sampler(Codes(), ("group_id",), "groups(by=['a', 'c'], size=2, distinct=True)")
    found = torch.stack([sampler(key(n), 12).group_id for n in range(50)])
    assert torch.equal(found.sort(1).values, torch.arange(12).expand(50, 12)) and len(found.unique(dim=0)) == 50


def test_groups_of_real_data():
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
    batch = draw(Codes(), ("x", "second", "order"), "rank(factor='d')")
    assert torch.equal(batch.order, (classes(batch.x)[:, 3] - classes(batch.second)[:, 3]).sign())
    assert stats.chisquare(torch.bincount(batch.order + 1).numpy(), [8000, 4000, 8000]).pvalue > 1e-3
    heights = torch.rand(100, generator=torch.Generator().manual_seed(0))
    data = Arrays(heights.reshape(100, 1, 1, 1), heights[:, None].numpy(), names=["height"])
    taller = draw(data, ("x", "second", "order"), "rank(factor='height')", 500)
    assert data.factor_sizes[0] < 100 and torch.equal(taller.order, (taller.x - taller.second).sign().long().flatten())
    known = draw(UNEVEN, ("x", "second", "order"), "rank(factor='a')")
    assert (classes(known.x)[:, 0] >= 0).all() and (classes(known.second)[:, 0] >= 0).all()


# --- labels ---------------------------------------------------------------------------------------------------------


def labelled(text, data=None, count=20_000, seed=0):
    data = data or Codes()
    batch = draw(data, ("labelled", "labels"), text, count, seed=seed)
    return classes(batch.labelled), batch.labels


def test_so_many_observations_are_labelled():
    for text, n in [
        ("labels(n=7)", 7),
        ("labels(n=0.25)", 15),
        ("labels", 60),
        ("labels(n=1.0)", 60),
        ("labels(n=1)", 1),
    ]:
        shown, told = labelled(text)
        index, counts = Codes().index(shown).unique(return_counts=True)
        assert len(index) == n and (n == 1 or stats.chisquare(counts.numpy()).pvalue > 1e-3)
        assert torch.equal(told, shown)


def test_which_are_labelled_depends_on_the_seed_alone():
    sets = [frozenset(Codes().index(labelled("labels(n=6)", seed=seed, count=500)[0]).tolist()) for seed in range(40)]
    assert len(set(sets)) == 40 and all(len(s) == 6 for s in sets)
    assert sets[3] == frozenset(Codes().index(labelled("labels(n=6)", seed=3, count=300)[0]).tolist())
    fixed = [Codes().index(labelled("labels(n=6, seed=3)", seed=s, count=500)[0]).unique().tolist() for s in (0, 1)]
    assert fixed[0] == fixed[1] == sorted(sets[3])


def test_any_observation_may_be_labelled():
    data = Codes((2, 3, 2))
    sampler = Sampler(data, ("labels",), "labels(n=2)")
    sets = torch.vmap(lambda seed: sampler.labelled.assigned(seed, torch.arange(2))[0])(torch.arange(20_000))
    sets = sets.sort(1).values
    pairs = torch.tensor(list(itertools.combinations(range(12), 2))) @ torch.tensor([12, 1])
    assert is_uniform(torch.searchsorted(pairs, sets @ torch.tensor([12, 1])), 66)


def test_a_fleet_hands_over_its_seeds():
    """With the seed as a tensor the batch is that of the run that was built with it."""
    text = "labels(n=9, noise=0.5, bins=2, permute=True)"
    shared = Sampler(Codes(), ("labelled", "labels"), text)
    for seed in (0, 5):
        own = Sampler(Codes(), ("labelled", "labels"), text, seed=seed)(key(3), 32)
        theirs = shared(key(3), 32, torch.tensor(seed))
        assert torch.equal(own.labelled, theirs.labelled) and torch.equal(own.labels, theirs.labels)


def test_labels_of_some_factors():
    shown, told = labelled("labels(factors=['d', 'a'])")
    assert torch.equal(told, shown[:, [3, 0]])


def test_noisy_labels_are_wrong_as_often_as_said_and_stay_so():
    data = Codes((10, 20, 30))
    shown, told = labelled("labels(noise=0.3)", data, 6000)
    index, first = data.index(shown), {}
    assert all(first.setdefault(int(i), row.tolist()) == row.tolist() for i, row in zip(index, told))
    whole = Sampler(data, ("labels",), "labels(noise=0.3)").labelled.table
    wrong = whole[1] != data.factors(whole[0])
    for k, size in enumerate(data.factor_sizes):
        assert stats.binomtest(int(wrong[:, k].sum()), 6000, 0.3 * (1 - 1 / size)).pvalue > 1e-3
        step = (whole[1][:, k] - data.factors(whole[0])[:, k]) % size
        assert is_uniform(step[step > 0] - 1, size - 1)


def test_binned_labels_keep_their_order():
    shown, told = labelled("labels(bins=2)")
    assert torch.equal(
        told, torch.stack([shown[:, 0] * 2 // 3, shown[:, 1], shown[:, 2] // 2, shown[:, 3] * 2 // 5], 1)
    )
    assert supervised_info(Codes(), "labels(bins=2)").labels == (2, 1, 2, 2)


def test_permuted_labels_are_renamed_one_to_one():
    names = set()
    for seed in range(30):
        shown, told = labelled("labels(permute=True)", seed=seed, count=800)
        for k, size in enumerate(Codes().factor_sizes):
            pairs = torch.stack([shown[:, k], told[:, k]], 1).unique(dim=0)
            assert len(pairs) == size and sorted(pairs[:, 1].tolist()) == list(range(size))
        names.add(tuple(pairs[:, 1].tolist()))
    assert len(names) > 20


def test_balanced_labels():
    for seed in range(3):
        data = load_data("digits")
        index, told = Sampler(data, ("labels",), "labels(n=100, balanced=True)", seed=seed).labelled.table
        assert len(index.unique()) == 100 and torch.bincount(told[:, 0]).tolist() == [10] * 10
        assert torch.equal(data.factors(index), told)


def test_unknown_labels_are_told_as_such():
    data = Rows([[0, -1], [-1, -1], [2, 0], [-1, 1]], (3, 2))
    shown, told = labelled("labels(noise=0.5, permute=True)", data, 400)
    assert sorted(shown[:, 2].unique().tolist()) == [0, 2, 3]
    assert torch.equal(told < 0, shown[:, :2] < 0)


# --- clips ----------------------------------------------------------------------------------------------------------


def test_clips():
    batch = draw(Film(), ("clips",), "clips(length=3, stride=2)")
    frames = classes(batch.clips)
    assert batch.clips.shape == (20_000, 3, 2, 1, 1)
    assert (frames[:, :, 0] == frames[:, :1, 0]).all() and (frames[:, :, 1].diff(dim=1) == 2).all()
    assert is_uniform(frames[:, 0, 0] * 2 + frames[:, 0, 1], 6)
    assert draw(Film(), ("clips",), "clips", 4).clips.shape == (4, 6, 2, 1, 1)


# --- what a method is told ------------------------------------------------------------------------------------------


def test_what_a_method_is_told():
    assert supervised_info(Codes()) == Codes().info == DataInfo((4, 1, 1), 60)
    assert supervised_info(Codes(), "labels(n=5, factors=['d', 'c'])").labels == (5, 4)
    assert supervised_info(Codes(), "labels(n=5, factors=['d', 'c'])").labelled == 5
    assert supervised_info(UNEVEN, "groups(by=['a'], size=3)")[-2:] == (3, 2)
    assert supervised_info(Film(), "clips(length=4)").members == 4


# --- the arithmetic underneath --------------------------------------------------------------------------------------


def test_permutations():
    for size in (1, 2, 7, 60, 4096):
        assert torch.equal(permuted(key(3), torch.arange(size), size).sort().values, torch.arange(size))
    keys = fold(key(), torch.arange(24_000))[:, None]
    places = permuted(keys, torch.arange(4), 4) @ torch.tensor([64, 16, 4, 1])
    orders = torch.tensor(list(itertools.permutations(range(4)))) @ torch.tensor([64, 16, 4, 1])
    assert is_uniform(torch.searchsorted(orders, places), 24)
    mixed = permuted(keys[:3], torch.arange(2), torch.tensor([[2], [5], [9]]))
    assert (mixed < torch.tensor([[2], [5], [9]])).all() and (mixed[:, 0] != mixed[:, 1]).all()


def test_draws_without_repetition():
    sizes = torch.tensor([3, 5]).repeat(10_000)
    drawn = without_repetition(key(2), sizes, 3)
    assert (drawn.sort(1).values.diff(dim=1) > 0).all() and (drawn < sizes[:, None]).all()
    assert all(is_uniform(drawn[sizes == size][:, s], size) for size in (3, 5) for s in range(3))
