"""Batches of the sampler for variants of each kind; tests/conformance/test_supervision.py has the common properties."""

import itertools

import pytest
import torch
from drawn import UNEVEN, Codes, Film, classes, draw, is_uniform, key
from scipy import stats
from torch.fx.experimental.proxy_tensor import make_fx

from unweave.contract import Batch, DataInfo
from unweave.data import Sampler, load_data, parse_supervision
from unweave.ops.noise import fold
from unweave.ops.shuffle import permuted, sample_without_replacement

# --- all kinds ---------------------------------------------------------------------------------

KINDS = [
    ("none", ("x", "x_other", "x_index"), Codes()),
    ("labels(n=7, factors=['c'], noise=0.3, bins=2, permute=True)", ("x", "labelled", "labels"), Codes()),
    ("labels(n=8, factors=['c'], balanced=True)", ("labelled", "labels"), Codes()),
    ("pairs(k='uniform')", ("x", "x_other", "pair", "changed"), Codes()),
    ("pairs(k=2, share=['a'], rule='dlib')", ("x", "pair", "changed"), Codes()),
    ("pairs(share=['a'])", ("x", "pair", "changed"), UNEVEN),
    ("groups(by=['a', 'c'], size=3)", ("groups", "group_id"), Codes()),
    ("groups(by=['a'], size=2, distinct=True)", ("x", "groups"), UNEVEN),
    ("match(content=['a'])", ("x", "pair", "shared"), Codes()),
    ("match(content=['a'], style=['b'])", ("x", "pair", "shared"), UNEVEN),
    ("triplets(by=['c'])", ("x", "positive", "negative"), Codes()),
    ("triplets(by=['a'])", ("x", "positive", "negative"), UNEVEN),
    ("rank(factor='d')", ("x", "x_other", "order"), Codes()),
    ("clips(length=3, stride=2)", ("x", "clips"), Film()),
]
every_kind = pytest.mark.parametrize("supervision, needs, data", KINDS, ids=[row[0] for row in KINDS])


@every_kind
def test_exactly_the_needed_fields(supervision, needs, data):
    batch = draw(data, needs, supervision, 2)
    assert {name for name in Batch._fields if getattr(batch, name) is not None} == set(needs)
    assert all(len(getattr(batch, name)) == 2 for name in needs)
    counts = [getattr(batch, n) for n in ("labels", "changed", "group_id", "shared", "order", "x_index")]
    assert all(t is None or t.dtype == torch.int64 for t in counts)


@every_kind
def test_same_key_same_batch_other_key_other_batch(supervision, needs, data):
    sampler = Sampler(data, needs, supervision)
    one, again, other = (sampler.plan(key(n), 2) for n in (5, 5, 6))
    assert all(torch.equal(one[name], again[name]) for name in needs)
    more = [sampler.plan(key(n), 2) for n in range(20)]
    assert any(not torch.equal(one[name], m[name]) for name in needs for m in (other, *more))


def tensors_of(thing):
    """Addresses of all tensors in an object, recursively."""
    if isinstance(thing, torch.Tensor):
        return {thing.data_ptr()}
    inside = thing.values() if isinstance(thing, dict) else thing if isinstance(thing, tuple) else None
    if inside is None:
        inside = list(getattr(thing, "__dict__", {}).values())
    return set().union(*(tensors_of(t) for t in inside))


@every_kind
def test_can_be_traced_and_vmapped(supervision, needs, data):
    """Keys and seeds may be traced and vmapped; separate calls give the same batches.

    Every constant of the graph is a table of the sampler: a constant created in the call would be copied from the
    host, which a CUDA graph cannot record.
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
def test_batches_of_data_sets(cache, name, text):
    data = load_data(name)
    sampler = Sampler(data, ("x", "pair", "x_index"), text)
    batch = sampler(key(), 16)
    assert batch.x.shape == batch.pair.shape == (16, *data.shape)
    assert torch.equal(data.images(batch.x_index), batch.x)
    mapped = torch.vmap(lambda one_key: tuple(sampler(one_key, 16))[:1])(torch.tensor([0, 1]))
    assert torch.equal(mapped[0][0], batch.x)


# --- none ---------------------------------------------------------------------------


def test_batches_equal_those_of_the_first_version():
    """Recorded from the first version: the batches of a run config never change."""
    numbers = {
        "none": [("x", [6, 33, 10, 53, 31, 15]), ("x_other", [22, 23, 27, 23, 9, 39])],
        "pairs(k=1)": [("x", [6, 33, 10, 53, 31, 15]), ("pair", [1, 13, 14, 33, 11, 18]), ("changed", [1] * 6)],
        "pairs(k=2)": [("pair", [41, 11, 54, 38, 10, 3])],
        "pairs(k='uniform')": [("pair", [1, 11, 14, 38, 10, 3]), ("changed", [1, 2, 1, 2, 2, 2])],
    }
    for supervision, fields in numbers.items():
        plan = Sampler(Codes(), tuple(name for name, _ in fields), supervision).plan(key(7), 6)
        assert all(plan[name].tolist() == expected for name, expected in fields), supervision


def test_observations_are_uniform_and_batches_independent():
    data = Codes()
    batch = draw(data, ("x", "x_other", "x_index"), "none", 60_000, n=3)
    first, x_other = data.index(classes(batch.x)), data.index(classes(batch.x_other))
    assert is_uniform(first, 60) and is_uniform(x_other, 60) and torch.equal(first, batch.x_index)
    together = torch.bincount(first * 60 + x_other, minlength=3600).reshape(60, 60)
    assert stats.chi2_contingency(together.numpy()).pvalue > 1e-3


# --- clips ----------------------------------------------------------------------------------------------------------


def test_clips():
    batch = draw(Film(), ("clips",), "clips(length=3, stride=2)")
    frames = classes(batch.clips)
    assert batch.clips.shape == (20_000, 3, 2, 1, 1)
    assert (frames[:, :, 0] == frames[:, :1, 0]).all() and (frames[:, :, 1].diff(dim=1) == 2).all()
    assert is_uniform(frames[:, 0, 0] * 2 + frames[:, 0, 1], 6)
    assert draw(Film(), ("clips",), "clips", 4).clips.shape == (4, 6, 2, 1, 1)


# --- DataInfo ------------------------------------------------------------------------------------------


def test_data_info():
    assert parse_supervision("none", Codes()).info(Codes()) == Codes().info == DataInfo((4, 1, 1), 60)
    assert parse_supervision("labels(n=5, factors=['d', 'c'])", Codes()).info(Codes()).labels == (5, 4)
    assert parse_supervision("labels(n=5, factors=['d', 'c'])", Codes()).info(Codes()).labelled == 5
    assert parse_supervision("groups(by=['a'], size=3)", UNEVEN).info(UNEVEN) == UNEVEN.info._replace(
        members=3, groups=2
    )
    assert parse_supervision("clips(length=4)", Film()).info(Film()).members == 4


# --- permutations --------------------------------------------------------------------------------------


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
    drawn = sample_without_replacement(key(2), sizes, 3)
    assert (drawn.sort(1).values.diff(dim=1) > 0).all() and (drawn < sizes[:, None]).all()
    assert all(is_uniform(drawn[sizes == size][:, s], size) for size in (3, 5) for s in range(3))
