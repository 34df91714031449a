"""Frequencies of sampled labels against their definition."""

import itertools

import torch
from drawn import Codes, Rows, classes, draw, is_uniform, key
from scipy import stats

from unweave.data import Sampler, load_data, parse_supervision


def labelled(text, data=None, count=20_000, seed=0):
    data = data or Codes()
    batch = draw(data, ("labelled", "labels"), text, count, seed=seed)
    return classes(batch.labelled), batch.labels


def test_number_of_labelled_observations():
    for text, n in [
        ("labels(n=7)", 7),
        ("labels(n=0.25)", 15),
        ("labels", 60),
        ("labels(n=1.0)", 60),
        ("labels(n=1)", 1),
    ]:
        shown, labels = labelled(text)
        index, counts = Codes().index(shown).unique(return_counts=True)
        assert len(index) == n and (n == 1 or stats.chisquare(counts.numpy()).pvalue > 1e-3)
        assert torch.equal(labels, shown)


def test_labelled_observations_depend_on_the_seed_only():
    sets = [frozenset(Codes().index(labelled("labels(n=6)", seed=seed, count=500)[0]).tolist()) for seed in range(40)]
    assert len(set(sets)) == 40 and all(len(s) == 6 for s in sets)
    assert sets[3] == frozenset(Codes().index(labelled("labels(n=6)", seed=3, count=300)[0]).tolist())
    fixed = [Codes().index(labelled("labels(n=6, seed=3)", seed=s, count=500)[0]).unique().tolist() for s in (0, 1)]
    assert fixed[0] == fixed[1] == sorted(sets[3])


def test_labelled_sets_are_uniform():
    data = Codes((2, 3, 2))
    sampler = Sampler(data, ("labels",), "labels(n=2)")
    sets = torch.vmap(lambda seed: sampler.tables.lookup.assigned(seed, torch.arange(2))[0])(torch.arange(20_000))
    sets = sets.sort(1).values
    pairs = torch.tensor(list(itertools.combinations(range(12), 2))) @ torch.tensor([12, 1])
    assert is_uniform(torch.searchsorted(pairs, sets @ torch.tensor([12, 1])), 66)


def test_a_fleet_passes_its_seeds():
    """A batch for the seed in a tensor equals the batch of a run with that seed."""
    text = "labels(n=9, noise=0.5, bins=2, permute=True)"
    shared = Sampler(Codes(), ("labelled", "labels"), text)
    for seed in (0, 5):
        own = Sampler(Codes(), ("labelled", "labels"), text, seed=seed)(key(3), 32)
        theirs = shared(key(3), 32, torch.tensor(seed))
        assert torch.equal(own.labelled, theirs.labelled) and torch.equal(own.labels, theirs.labels)


def test_labels_of_some_factors():
    shown, labels = labelled("labels(factors=['d', 'a'])")
    assert torch.equal(labels, shown[:, [3, 0]])


def test_noise_has_its_probability_and_is_fixed():
    data = Codes((10, 20, 30))
    shown, labels = labelled("labels(noise=0.3)", data, 6000)
    index, first = data.index(shown), {}
    assert all(first.setdefault(int(i), row.tolist()) == row.tolist() for i, row in zip(index, labels))
    whole = Sampler(data, ("labels",), "labels(noise=0.3)").tables.lookup.table
    wrong = whole[1] != data.factors(whole[0])
    for k, size in enumerate(data.factor_sizes):
        assert stats.binomtest(int(wrong[:, k].sum()), 6000, 0.3 * (1 - 1 / size)).pvalue > 1e-3
        step = (whole[1][:, k] - data.factors(whole[0])[:, k]) % size
        assert is_uniform(step[step > 0] - 1, size - 1)


def test_binned_labels_keep_their_order():
    shown, labels = labelled("labels(bins=2)")
    assert torch.equal(
        labels, torch.stack([shown[:, 0] * 2 // 3, shown[:, 1], shown[:, 2] // 2, shown[:, 3] * 2 // 5], 1)
    )
    assert parse_supervision("labels(bins=2)", Codes()).info(Codes()).labels == (2, 1, 2, 2)


def test_permuted_labels_are_a_bijection():
    names = set()
    for seed in range(30):
        shown, labels = labelled("labels(permute=True)", seed=seed, count=800)
        for k, size in enumerate(Codes().factor_sizes):
            pairs = torch.stack([shown[:, k], labels[:, k]], 1).unique(dim=0)
            assert len(pairs) == size and sorted(pairs[:, 1].tolist()) == list(range(size))
        names.add(tuple(pairs[:, 1].tolist()))
    assert len(names) > 20


def test_balanced_labels():
    for seed in range(3):
        data = load_data("digits")
        index, labels = Sampler(data, ("labels",), "labels(n=100, balanced=True)", seed=seed).tables.lookup.table
        assert len(index.unique()) == 100 and torch.bincount(labels[:, 0]).tolist() == [10] * 10
        assert torch.equal(data.factors(index), labels)


def test_unknown_labels_are_negative():
    data = Rows([[0, -1], [-1, -1], [2, 0], [-1, 1]], (3, 2))
    shown, labels = labelled("labels(noise=0.5, permute=True)", data, 400)
    assert sorted(shown[:, 2].unique().tolist()) == [0, 2, 3]
    assert torch.equal(labels < 0, shown[:, :2] < 0)
