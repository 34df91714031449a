import math

import pytest
import torch
from scipy import stats
from torch.fx.experimental.proxy_tensor import make_fx

from unweave.contract import Batch, UserError
from unweave.data import Dataset, Digits, Sampler
from unweave.data.samplers import change_factors, choose_factors


class Codes(Dataset):
    """A grid whose images are its factor classes, so that a batch can be read back."""

    def __init__(self, sizes=(3, 1, 4, 5)):
        super().__init__()
        self.name, self.factor_sizes, self.size = "codes", tuple(sizes), math.prod(sizes)
        self.shape = (len(sizes), 1, 1)

    def images(self, index_B):
        return self.factors(index_B).float()[..., None, None]


def key(n=0):
    return torch.tensor(n)


def classes(x):
    return x[..., 0, 0].long()


def is_uniform(values, size):
    counts = torch.bincount(values.flatten(), minlength=size)
    assert len(counts) == size
    return size == 1 or stats.chisquare(counts.numpy()).pvalue > 1e-3


def test_exactly_the_needed_fields():
    for needs in [("x",), ("x", "second"), ("x", "labels"), ("second",)]:
        batch = Sampler(Codes(), needs)(key(), 8)
        assert tuple(name for name in Batch._fields if getattr(batch, name) is not None) == needs
    for needs in [("x", "pair"), ("x", "pair", "changed"), ("x", "changed")]:
        batch = Sampler(Codes(), needs, "pairs(k=1)")(key(), 8)
        assert tuple(name for name in Batch._fields if getattr(batch, name) is not None) == needs


def test_observations_are_uniform_and_batches_independent():
    data = Codes()
    batch = Sampler(data, ("x", "second", "labels"))(key(3), 60_000)
    first, second = data.index(classes(batch.x)), data.index(classes(batch.second))
    assert is_uniform(first, 60) and is_uniform(second, 60)
    together = torch.bincount(first * 60 + second, minlength=3600).reshape(60, 60)
    assert stats.chi2_contingency(together.numpy()).pvalue > 1e-3
    assert torch.equal(batch.labels, classes(batch.x)) and batch.labels.dtype == torch.int64


def test_same_key_same_batch_other_key_other_batch():
    sampler = Sampler(Codes(), ("x", "second", "pair", "changed", "labels"), "pairs(k='uniform')")
    one, again, other = sampler(key(5), 64), sampler(key(5), 64), sampler(key(6), 64)
    assert all(torch.equal(a, b) for a, b in zip(one, again, strict=True))
    assert not torch.equal(one.x, other.x) and not torch.equal(one.pair, other.pair)


@pytest.mark.parametrize("k", [1, 2, 3])
def test_exactly_k_factors_change(k):
    batch = Sampler(Codes(), ("x", "pair", "changed"), f"pairs(k={k})")(key(k), 20_000)
    differs = classes(batch.x) != classes(batch.pair)
    assert (differs.sum(1) == k).all() and (batch.changed == k).all()
    assert batch.changed.dtype == torch.int64 and not differs[:, 1].any()
    bits = differs[:, [0, 2, 3]].long() @ torch.tensor([4, 2, 1])
    sets = torch.tensor([bin(n).count("1") == k for n in range(8)]).nonzero()[:, 0]
    assert is_uniform(torch.searchsorted(sets, bits), len(sets))


def test_uniform_k():
    batch = Sampler(Codes(), ("x", "pair", "changed"), "pairs(k='uniform')")(key(1), 20_000)
    differs = (classes(batch.x) != classes(batch.pair)).sum(1)
    assert torch.equal(differs, batch.changed)
    assert batch.changed.min() == 1 and is_uniform(batch.changed - 1, 2)


def test_new_values_are_uniform_over_the_others():
    batch = Sampler(Codes(), ("x", "pair"), "pairs(k=3)")(key(2), 40_000)
    old, new = classes(batch.x), classes(batch.pair)
    for i, size in [(0, 3), (2, 4), (3, 5)]:
        step = (new[:, i] - old[:, i]) % size
        assert is_uniform(step - 1, size - 1)
        assert is_uniform(new[:, i], size)


def test_the_pure_parts():
    k = torch.tensor([0, 1, 2, 3])
    chosen = choose_factors(key(), k, (3, 1, 4, 5))
    assert torch.equal(chosen.sum(1), k) and not chosen[:, 1].any()
    factors = torch.zeros(4, 4, dtype=torch.int64)
    assert torch.equal(change_factors(key(), factors, chosen, (3, 1, 4, 5)) != 0, chosen)


def test_real_sets(sprites, rooms):
    for data in (sprites, rooms):
        batch = Sampler(data, ("x", "pair", "labels"), "pairs(k=1)")(key(), 16)
        assert batch.x.shape == batch.pair.shape == (16, *data.shape)
        assert torch.equal(data.images(data.index(batch.labels)), batch.x)


def test_can_be_recorded_and_mapped(sprites):
    sampler = Sampler(sprites, ("x", "second", "pair", "changed", "labels"), "pairs(k='uniform')")

    def draw(seed):
        return tuple(sampler(seed, 8))

    recorded, expected = make_fx(draw)(key(1)), draw(key(9))
    assert all(torch.equal(a, b) for a, b in zip(recorded(key(9)), expected, strict=True))
    mapped = torch.vmap(draw)(torch.tensor([9, 10]))
    assert all(torch.equal(a[0], b) for a, b in zip(mapped, expected, strict=True))


@pytest.mark.parametrize(
    "data, needs, supervision, said",
    [
        (Codes(), ("x", "pair"), "none", "needs pairs.*pairs\\(k=1\\)"),
        (Codes(), ("x",), "pairs(k=1)", "needs only x"),
        (Digits(), ("x", "pair"), "pairs(k=1)", "grid.*digits"),
        (Codes(), ("x", "pair"), "pairs(k=0)", "k=0.*1 to 3"),
        (Codes(), ("x", "pair"), "pairs(k=4)", "k=4.*1 to 3"),
        (Codes(), ("x", "pair"), "pairs(k=True)", "k=True"),
        (Codes(), ("x", "pair"), "pairs(k=1.5)", "k=1.5.*'uniform'"),
        (Codes(), ("x", "pair"), "pairs(k='some')", "k='some'"),
        (Codes(), ("x", "pair"), "pairs", "k=None"),
        (Codes((1, 7)), ("x", "pair"), "pairs(k='uniform')", "1 to 1$"),
        (Codes(), ("x", "pair"), "pears(k=1)", "did you mean 'pairs'"),
        (Codes(), ("x", "pair"), "pairs(n=1)", "'n'"),
        (Codes(), ("x",), "none(k=1)", "'k'"),
        (Codes(), ("y",), "none", "'y'"),
    ],
)
def test_refused(data, needs, supervision, said):
    with pytest.raises(UserError, match=said) as error:
        Sampler(data, needs, supervision)
    assert "\n" not in str(error.value)
