"""Counter-based noise must be random, and a function of its key and position.

The draws are fixed by their keys, so a test that passes once passes always; the bounds are those of random draws.
"""

import itertools

import numpy as np
import pytest
import torch
from scipy import stats

from unweave.ops.noise import fold, mix, random_bits, random_integers, random_normal, random_uniform

ROWS = 50_000


def key(*items, seed=0):
    """The key of a stream, made as the engine makes it: a seed with a step, a phase and a name folded in."""
    made = torch.tensor(seed, dtype=torch.int64)
    for item in items:
        made = fold(made, item)
    return made


def normal(*items, seed=0, rows=ROWS):
    return random_normal(key(*items, seed=seed), (rows,)).numpy()


def test_normal():
    draw = normal("eps", rows=200_000)
    assert abs(draw.mean()) < 0.01 and abs(draw.var() - 1) < 0.02
    assert abs(stats.skew(draw)) < 0.03 and abs(stats.kurtosis(draw)) < 0.06
    assert stats.kstest(draw, "norm").pvalue > 0.01
    assert 4 < np.abs(draw).max() < 7


def test_uniform():
    draw = random_uniform(key("perm"), (200_000,)).numpy()
    assert stats.kstest(draw, "uniform").pvalue > 0.01
    assert 0 <= draw.min() < 1e-4 and 1 - 1e-4 < draw.max() < 1


@pytest.mark.parametrize("high", [2, 3, 10, 1000])
def test_integers(high):
    draw = random_integers(key("x"), (100 * high,), high).numpy()
    assert draw.min() >= 0 and draw.max() < high
    assert stats.chisquare(np.bincount(draw, minlength=high)).pvalue > 0.01


def test_integers_may_differ_in_range_and_reach_all_of_a_large_one():
    high = torch.tensor([1, 5, 737_280])
    draw = random_integers(key("x"), (20_000, 3), high)
    assert (draw < high).all() and (draw >= 0).all()
    assert draw[:, 2].max() > 737_000 and draw[:, 2].min() < 300


def test_every_bit_is_fair():
    bits = random_bits(key("bits"), (20_000,))
    ones = np.array([((bits >> i) & 1).float().mean().item() for i in range(64)])
    assert np.abs(ones - 0.5).max() < 4.5 * 0.5 / np.sqrt(20_000)


def test_flipping_one_bit_of_a_key_flips_half_of_the_result():
    flips = []
    for i in range(63):
        a, b = mix(key("a")), mix(key("a") ^ (1 << i))
        flips.append(bin((a ^ b).item() & (2**64 - 1)).count("1"))
    assert 28 < np.mean(flips) < 36 and min(flips) > 12


def test_streams_are_unrelated():
    """Names, steps, phases and adjacent seeds: correlations as small as between independent draws."""
    streams = [normal(step, "noise", name, seed=s) for s, step in ((0, 0), (0, 1), (1, 0), (2, 0)) for name in "ab"]
    streams += [normal(0, 1, "noise", "a"), normal(1, 0, "noise", "a")]
    off = np.corrcoef(streams)[np.triu_indices(len(streams), 1)]
    assert np.abs(off).max() < 4.5 / np.sqrt(ROWS)


def test_neighbours_in_a_stream_are_unrelated():
    draw = normal("eps")
    for lag in (1, 2, 3, 10, 64, 640):
        assert abs(np.corrcoef(draw[:-lag], draw[lag:])[0, 1]) < 4.5 / np.sqrt(ROWS)
        assert abs(np.corrcoef(draw[:-lag] ** 2, draw[lag:] ** 2)[0, 1]) < 4.5 / np.sqrt(ROWS)


def test_no_number_is_drawn_twice():
    """64-bit numbers of 40 streams: a repeat would mean that two streams overlap."""
    keys = [key(step, name, seed=seed) for seed in range(2) for step in range(10) for name in ("data", "noise")]
    bits = torch.cat([random_bits(k, (5_000,)) for k in keys])
    assert len(bits.unique()) == len(bits)


@pytest.mark.parametrize("kind", [random_bits, random_uniform, random_normal])
def test_a_number_depends_only_on_key_and_position(kind):
    long = kind(key("eps"), (1000,))
    assert torch.equal(kind(key("eps"), (1000,)), long)
    assert torch.equal(kind(key("eps"), (10,)), long[:10])
    assert torch.equal(kind(key("eps"), (20, 50)), long.reshape(20, 50))


def test_drawing_does_not_touch_torch_s_own_generator():
    before = torch.get_rng_state()
    random_normal(key("eps"), (10,))
    assert torch.equal(torch.get_rng_state(), before)


def test_known_values():
    """The same on every machine and in every version: a change here changes every stored run."""
    assert key(3, "noise", seed=7).item() == 9105140426465033213
    assert random_integers(key("x"), (5,), 100).tolist() == [17, 73, 87, 17, 17]


def test_mix_is_splitmix64_in_unsigned_arithmetic():
    for value in (1, 2, 12345, 2**63 - 1, -1, -(2**63)):
        bits = value % 2**64
        bits = (bits ^ bits >> 30) * 0xBF58476D1CE4E5B9 % 2**64
        bits = (bits ^ bits >> 27) * 0x94D049BB133111EB % 2**64
        assert mix(torch.tensor(value)).item() % 2**64 == bits ^ bits >> 31


def test_fold_depends_on_items_and_their_order():
    items = ["data", "noise", "eps", "eps_pair", "x", "a", "b", *range(200), 10**12]
    made = [key(item).item() for item in items] + [key(a, b).item() for a, b in itertools.permutations(range(20), 2)]
    assert len(set(made)) == len(made)
    assert key(5) == fold(torch.tensor(0), torch.tensor(5))
