"""Views select the right observations, and a text opens the same view as Python."""

import json
import math

import pytest
import torch
from raises import raises
from scipy import stats
from torch.fx.experimental.proxy_tensor import make_fx

import unweave as uw
from unweave.data import Dataset, Digits, Rooms, Sampler, load_data
from unweave.data.callspec import call_text
from unweave.data.views import VIEWS, correlated, holdout, noisy, split, subset


class Grid(Dataset):
    """A grid whose images are its factor classes."""

    name, shape, options = "grid", (3, 1, 1), {}
    factor_names, factor_sizes = ("shape", "x", "y"), (3, 8, 8)
    factor_values = (("cube", "ball", "cone"), tuple(map(float, range(8))), tuple(map(float, range(8))))
    size = math.prod(factor_sizes)

    def images(self, index_B):
        return self.factors(index_B).float()[..., None, None] / 10


class Film(Grid):
    """Twelve videos of sixteen frames."""

    name, grid, frames = "film", False, 16


def all_indices(data):
    return torch.arange(data.size)


def test_first_random_and_named_observations():
    data = Digits()
    assert torch.equal(subset(data, first=10).images(torch.arange(10)), data.pixels[:10])
    named = subset(data, indices=[5, 1700, 5])
    assert torch.equal(named.images(torch.arange(3)), data.pixels[[5, 1700, 5]]) and named.size == 3
    drawn = [subset(data, random=50, seed=seed).index_N for seed in (0, 0, 1)]
    assert torch.equal(drawn[0], drawn[1]) and not torch.equal(drawn[0], drawn[2]) and len(drawn[0].unique()) == 50
    assert torch.equal(named.factors(torch.arange(3)), data.factors(torch.tensor([5, 1700, 5])))
    assert torch.equal(named.values(torch.arange(3)), data.values(torch.tensor([5, 1700, 5])))


def test_classes_of_a_grid_make_a_grid():
    view = subset(Grid(), where={"shape": ["ball", 2], "y": [0, 3, 7]})
    assert view.grid and view.factor_sizes == (2, 8, 3) and view.size == 48
    assert view.factor_values[0] == ("ball", "cone") and view.factor_values[2] == (0.0, 3.0, 7.0)
    shown = (view.images(all_indices(view))[..., 0, 0] * 10).round().long()
    assert shown[:, 0].unique().tolist() == [1, 2] and shown[:, 2].unique().tolist() == [0, 3, 7]
    assert len(shown.unique(dim=0)) == 48
    batch = Sampler(view, ("x", "pair"), "pairs(k=1)")(torch.tensor(0), 500)
    assert ((batch.x != batch.pair).flatten(1).sum(1) == 1).all()


def test_classes_of_other_data_are_a_selection():
    view = subset(Digits(), where={"digit": 3})
    assert not view.grid and view.size == 183 and (view.factors(all_indices(view)) == 3).all()
    assert view.factor_sizes == (10,)


def test_held_out_combinations():
    data, combination = Grid(), {"shape": ["cube"], "x": [0, 1]}
    train, test = (holdout(data, combination=combination, part=part) for part in ("train", "test"))
    assert train.size == 192 - 16 and test.size == 16
    both = torch.cat([train.index_N, test.index_N])
    assert torch.equal(both.sort().values, all_indices(data))
    held = test.factors(all_indices(test))
    assert (held[:, 0] == 0).all() and (held[:, 1] <= 1).all()
    rest = train.factors(all_indices(train))
    assert not ((rest[:, 0] == 0) & (rest[:, 1] <= 1)).any() and rest[:, 0].unique().tolist() == [0, 1, 2]


def test_splits_are_determined_by_the_seed():
    data = Digits()
    train, validation = (split(data, part=part, fraction=0.8, seed=3) for part in ("train", "validation"))
    assert train.size == 1438 and validation.size == 359
    assert torch.equal(torch.cat([train.index_N, validation.index_N]).sort().values, all_indices(data))
    assert torch.equal(split(data, fraction=0.8, seed=3).index_N, train.index_N)
    assert not torch.equal(split(data, fraction=0.8, seed=4).index_N, train.index_N)
    kept = torch.stack([torch.isin(all_indices(data), split(data, fraction=0.5, seed=s).index_N) for s in range(40)])
    assert float(kept.sum(0).double().var()) == pytest.approx(10.0, abs=1.2)  # the variance of 40 fair coins


def test_videos_are_not_divided():
    data = Film()
    for view in (split(data, fraction=0.5), subset(data, random=4), subset(data, first=2), noisy(data)):
        assert view.frames == 16 and view.size % 16 == 0
        clips = Sampler(view, ("clips",), "clips(length=4)").plan(torch.tensor(0), 50)["clips"]
        base_index = view.base_index(clips)
        assert (base_index.diff(dim=1) == 1).all() and (base_index[:, 0] // 16 == base_index[:, -1] // 16).all()
    assert subset(data, first=2).size == 32 and subset(data, where={"shape": [1]}).frames == 16
    assert subset(data, indices=[3, 4, 5]).frames == 1 and Grid().frames == 1


def test_a_last_factor_called_frame_defines_videos():
    data = Grid()
    data.factor_names = ("shape", "x", "frame")
    assert data.frames == 8
    clips = Sampler(data, ("clips",), "clips(length=8)").plan(torch.tensor(0), 20)["clips"]
    assert (clips[:, 0] % 8 == 0).all()


def test_correlated_factors_have_the_stated_probabilities():
    data, sigma = Grid(), 0.3
    view = correlated(data, factors=["x", "y"], sigma=sigma, size=50_000)
    found = view.factors(all_indices(view))
    grid = torch.arange(8).double() / 7.0
    expected = (-((grid[:, None] - grid) ** 2) / (2 * sigma**2)).exp()
    counts = torch.bincount(found[:, 1] * 8 + found[:, 2], minlength=64).numpy()
    assert stats.chisquare(counts, (50_000 * expected / expected.sum()).flatten().numpy()).pvalue > 1e-3
    assert stats.chisquare(torch.bincount(found[:, 0]).numpy()).pvalue > 1e-3
    strengths = [correlated(data, factors=["x", "y"], sigma=s).factors(all_indices(data))[:, 1:] for s in (0.1, 0.7)]
    strong, weak = (torch.corrcoef(pair.double().T)[0, 1] for pair in strengths)
    assert strong > 0.9 > 0.5 > weak > 0.05
    other = correlated(data, factors=["x", "y"], sigma=sigma, size=50_000, seed=1)
    assert not torch.equal(view.index_N, other.index_N)


def test_pairs_of_correlated_data_change_independently():
    """The first image of a pair follows the correlation; the changed factor does not."""
    view = correlated(Grid(), factors=["x", "y"], sigma=0.05)
    batch = Sampler(view, ("x", "pair"), "pairs(k=1)")(torch.tensor(1), 4000)
    first, second = ((t[..., 0, 0] * 10).round() for t in (batch.x, batch.pair))
    assert (first[:, 1] - first[:, 2]).abs().max() <= 1
    assert ((first != second).sum(1) == 1).all() and (second[:, 1] - second[:, 2]).abs().max() == 7
    with raises("data", value="subset"):
        subset(Digits(), first=5).index(torch.zeros(1, 1, dtype=torch.int64))


def test_noise():
    data = Digits()
    view, other = noisy(data, sigma=0.2), noisy(data, sigma=0.2, seed=1)
    index = torch.arange(400)
    x = view.images(index)
    assert torch.equal(x, view.images(index)) and not torch.equal(x, other.images(index))
    assert x.min() >= 0 and x.max() <= 1
    middle = (data.images(index) - 0.5).abs() < 0.01  # not clipped
    noise = (x - data.images(index))[middle]
    assert stats.kstest(noise.numpy(), stats.norm(0, 0.2).cdf).pvalue > 1e-3
    assert torch.equal(view.factors(index), data.factors(index)) and view.grid == data.grid


@pytest.mark.parametrize(
    "text",
    [
        "subset(data='digits', first=100)",
        "subset(data='digits(size=16)', where={'digit': [1, 2]})",
        "split(data='digits', part='validation', fraction=0.75, seed=2)",
        "noisy(data=\"split(data='digits')\", sigma=0.05)",
        "holdout(data='rooms(size=8)', combination={'shape': ['cube'], 'scale': [0]}, part='test')",
        "correlated(data='rooms(size=8)', factors=['floor_hue', 'wall_hue'], sigma=0.4, size=1000)",
    ],
)
def test_text_and_options_open_the_same_view(text, cache):
    data = load_data(text)
    again = load_data(data.name, **json.loads(json.dumps(data.options)))
    index = torch.arange(20)
    assert data.info == again.info and data.name == text.split("(")[0]
    assert torch.equal(data.images(index), again.images(index))
    assert load_data(call_text(data.name, data.options)).info == data.info


@pytest.mark.parametrize(
    "make",
    [
        lambda: noisy(subset(Rooms(size=8), where={"shape": [1, 3]})),
        lambda: correlated(Rooms(size=8), factors=["scale", "shape"], size=100),
        lambda: split(Digits()),
    ],
)
def test_views_can_be_traced_and_vmapped(cache, make):
    view = make()
    index, other = torch.tensor([[3, 5], [8, 1]]), torch.tensor([[2, 2], [7, 0]])
    traced = make_fx(torch.vmap(lambda i: (view.images(i), view.factors(i))))(other)
    images, factors = traced(index)
    for row in range(2):
        torch.testing.assert_close(images[row], view.images(index[row]))
        assert torch.equal(factors[row], view.factors(index[row]))


def test_a_view_in_a_run(tmp_path):
    text = "split(data='digits', fraction=0.5)"
    run = uw.train("vae", text, steps=2, batch=4, net="small", latents=3, out=tmp_path / "run")
    loaded = uw.load(tmp_path / "run")
    assert loaded.data.size == 898 and torch.equal(loaded.data.index_N, run.data.index_N)


@pytest.mark.parametrize(
    "text, argument, value",
    [
        ("subset(first=3)", "data", None),
        ("subset(data='digits')", "subset", []),
        ("subset(data='digits', first=3, random=4)", "subset", ["first", "random"]),
        ("subset(data='digits', first=0)", "first", 0),
        ("subset(data='digits', random=1798)", "random", 1798),
        ("subset(data='digits', indices=[0, 1797])", "indices", 1797),
        ("subset(data='digits', indices=[])", "data", "subset(indices=[])"),
        ("subset(data='digits', indices=1.5)", "indices", 1.5),
        ("subset(data='digits', where={'digit': 3.5})", "class", 3.5),
        ("subset(data='digits', where={3: [1]})", "factor", "3"),
        ("subset(data='digits', where=3)", "where", 3),
        ("subset(data='digits', where={'digits': [1]})", "factor", "digits"),
        ("subset(data='digits', where={'digit': [10]})", "class", 10),
        ("subset(data='digits', where={'digit': []})", "where", []),
        ("subset(data='digits', where={})", "where", {}),
        ("subset(data='rooms(size=8)', where={'shape': ['cubes']})", "class", "cubes"),
        ("subset(data='digit', first=3)", "data", "digit"),
        ("subset(data=3, first=3)", "data", 3),
        ("split(data='digits', part='test')", "part", "test"),
        ("split(data='digits', fraction=1.0)", "fraction", 1.0),
        ("split(data='digits', fraction=0)", "fraction", 0),
        ("split(data='digits', seed=-1)", "seed", -1),
        ("holdout(data='digits')", "combination", None),
        ("holdout(data='digits', combination={'digit': [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]})", "data", ...),
        ("correlated(data='digits', factors=['digit'])", "factors", ["digit"]),
        ("correlated(data='digits', factors=3)", "factors", 3),
        ("correlated(data='digits', factors=['digit', 'size'])", "factor", "size"),
        ("correlated(data='rooms(size=8)', factors=['scale', 'shape'], sigma=0)", "sigma", 0),
        ("noisy(data='digits', sigma=-1)", "sigma", -1),
        ("noisy(data='digits', strength=1)", "option", "strength"),
    ],
)
def test_invalid_options_are_refused(text, argument, value, cache):
    with raises(argument, value=... if value is None else value):
        load_data(text)


def test_views_have_the_names_of_their_functions():
    assert all(view.__name__ == name for name, view in VIEWS.items())
