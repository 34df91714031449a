"""Views: no observation is in both parts of a split, and correlated draws have the stated probabilities."""

import hashlib

import numpy as np
import pytest
import torch

import unweave as uw
from unweave.data import Dataset
from unweave.data.views import correlated, holdout, noisy, split, subset

SIDE = 20
FACTORS = np.stack([np.arange(SIDE**2) // SIDE, np.arange(SIDE**2) % SIDE], 1)


def numbered(factors=FACTORS):
    """Data whose images show the index of the observation."""
    index = np.arange(len(factors))
    images = np.zeros((len(factors), 1, 8, 8), np.uint8)
    images[:, 0, 0, 0], images[:, 0, 0, 1] = index % 256, index // 256
    return uw.load_data(images, factors=factors, names=["a", "b"])


def shown(view):
    """The index of each observation of a view in `numbered`."""
    pixels = (view.images(torch.arange(view.size))[:, 0, 0, :2] * 255).round().long()
    return (pixels[:, 0] + 256 * pixels[:, 1]).tolist()


def parts(data, **options):
    return [split(data, part=part, **options) for part in ("train", "validation")]


def drawn(data, **options):
    return correlated(data, factors=["a", "b"], sigma=0.2, **options)


@pytest.mark.parametrize(
    "make",
    [
        drawn,
        lambda data: drawn(data, size=3000),
        lambda data: drawn(split(data, fraction=0.5)),
        lambda data: subset(drawn(data, size=3000), random=500),
        lambda data: holdout(drawn(data), combination={"a": [0]}),
        lambda data: drawn(drawn(data)),
        lambda data: subset(data, indices=[0, 1, 2, 3, 0, 1, 2, 3, 0, 5]),
    ],
)
@pytest.mark.parametrize("fraction", [0.5, 0.9])
def test_no_observation_is_in_both_parts_of_a_split(make, fraction):
    """(A7)"""
    data = make(numbered())
    train, validation = (shown(part) for part in parts(data, fraction=fraction, seed=2))
    assert not set(train) & set(validation)
    assert sorted(train + validation) == sorted(shown(data))
    share = len(set(train)) / len(set(shown(data)))
    assert share == pytest.approx(fraction, abs=0.1)


def test_a_split_of_a_split_of_repeated_observations():
    """(A7)"""
    train, test = parts(drawn(numbered(), size=2000), fraction=0.8)
    first, second = parts(train, fraction=0.5, seed=1)
    found = [set(shown(part)) for part in (first, second, test)]
    assert not found[0] & found[1] and not found[0] & found[2] and not found[1] & found[2]


def test_noise_does_not_hide_a_repetition():
    """(A7)"""
    data = drawn(numbered())
    plain, hidden = (parts(source, fraction=0.5)[0] for source in (data, noisy(data, sigma=0.01)))
    assert torch.equal(plain.index_N, hidden.index_N)


class Film(Dataset):
    """Ten videos of four frames, whose images show the video and the frame."""

    name, options, grid, frames, shape, size = "film", {}, False, 4, (2, 1, 1), 40
    factor_names, factor_sizes = ("a", "b"), (4, 4)
    factor_values = ((0.0, 1.0, 2.0, 3.0),) * 2

    def images(self, index_B):
        return torch.stack([index_B // 4, index_B % 4], -1).float()[..., None, None] / 100

    def factors(self, index_B):
        return torch.stack([index_B // 4 % 4, index_B % 4], -1)


def videos(view):
    return set((view.images(torch.arange(view.size))[:, 0, 0, 0] * 100).round().long().tolist())


def test_repeated_videos_stay_whole():
    """(A7)"""
    repeated = subset(Film(), indices=[4 * video + frame for video in (1, 2, 1, 3, 4, 1, 2) for frame in range(4)])
    single_frames = correlated(Film(), factors=["a", "b"], sigma=0.5, size=100)
    for data in (repeated, single_frames):
        train, validation = parts(data, fraction=0.5)
        assert not videos(train) & videos(validation) and train.size + validation.size == data.size
        assert train.frames == validation.frames == data.frames


@pytest.mark.parametrize(
    "text, found",
    [
        ("split(data='digits', fraction=0.8, seed=3)", "77d3990d66e5"),
        ("split(data='digits', part='validation')", "a785c6dc589b"),
        ("split(data=\"subset(data='digits', random=500)\", fraction=0.5, seed=1)", "c5d080f713b1"),
        ("split(data='clips(size=16)', fraction=0.5)", "ab59400e548b"),
        ("correlated(data='sprites(size=16)', factors=['posX', 'posY'], sigma=0.2, size=2000)", "04cece4466e0"),
        ("correlated(data='sprites(size=16)', factors=['posX', 'scale'], sigma=0.01, size=99, seed=4)", "d3654186ca3a"),
    ],
)
def test_other_views_keep_their_members(text, found):
    """Old runs name their data by these texts."""
    view = uw.load_data(text)
    assert hashlib.sha256(view.index_N.numpy().tobytes()).hexdigest()[:12] == found


def opposite(count):
    """Factors with a = 1 - b: without normalisation, the weight of every observation underflows for a small sigma."""
    return np.stack([np.arange(count) % 2, 1 - np.arange(count) % 2], 1)


def test_small_weights_do_not_underflow():
    """(A19)"""
    view = correlated(numbered(opposite(50)), factors=["a", "b"], sigma=0.02, size=1000)
    counts = np.bincount(shown(view), minlength=50)
    assert counts.min() > 0 and counts.max() < 60  # each is drawn 20 times on average


def test_small_weights_keep_their_proportions():
    """(A19) Of two differences, the smaller is drawn e^25 times as often; unknown factors are never drawn."""
    a = np.array([0, 0, 10, 10, 3, 3, np.nan, 10] * 10)
    b = np.array([10, 10, 0, 0, 10, 10, 0, np.nan] * 10)
    view = correlated(numbered(np.stack([a, b], 1)), factors=["a", "b"], sigma=0.01, size=500)
    assert set(a[shown(view)]) == {3.0} and len(set(shown(view))) == 20


def test_a_draw_of_one_observation_is_refused():
    """(A19)"""
    a = np.arange(11)
    with pytest.raises(uw.UserError) as caught:
        correlated(numbered(np.stack([a, 10 - a], 1)), factors=["a", "b"], sigma=0.02, size=100)
    assert caught.value.argument == "sigma" and caught.value.value == 0.02
    never = np.stack([np.where(a % 2, a, np.nan), np.where(a % 2, np.nan, a)], 1)
    with pytest.raises(uw.UserError) as caught:
        correlated(numbered(never), factors=["a", "b"], sigma=0.2)
    assert caught.value.argument == "factors"
