import hashlib
import math

import pytest
import torch
import torch.nn.functional as F
from raises import raises
from torch.fx.experimental.proxy_tensor import make_fx

from unweave.data import Sprites, draw_sprites
from unweave.data.synthetic.sprites import outlines


def values_of(data, index):
    classes = data.factors(index)
    tables = [torch.tensor(values, dtype=torch.float64) for values in data.factor_values]
    return torch.stack([table[classes[:, k]] for k, table in enumerate(tables)], dim=1)


def random_indices(n, seed=0):
    return torch.randint(0, 737280, (n,), generator=torch.Generator().manual_seed(seed))


def test_its_description(sprites):
    assert sprites.size == 737280 and sprites.shape == (1, 64, 64)
    assert sprites.factor_sizes == tuple(len(values) for values in sprites.factor_values)
    index = random_indices(100)
    assert torch.equal(sprites.index(sprites.factors(index)), index)
    assert sprites.factors(torch.tensor([1, 32, 737279])).tolist() == [
        [0, 0, 0, 0, 1],
        [0, 0, 0, 1, 0],
        [2, 5, 39, 31, 31],
    ]
    assert not sprites.state_dict()


def test_every_image_equals_the_published_one(sprites):
    """Checksum of all 737280 images, recorded when they were equal to a re-rendering of the published file."""
    digest = hashlib.sha256(sprites.rows_NH.numpy().tobytes()).hexdigest()
    assert digest == "faaf9cf5fa6256819224cb831e7fe802f7e166a63fda58f12c5f1c6eec3f5ea0"


def test_images_are_float_zero_or_one(sprites):
    x = sprites.images(random_indices(16))
    assert x.shape == (16, 1, 64, 64) and x.dtype == torch.float32
    assert set(x.unique().tolist()) == {0.0, 1.0}


def test_the_last_orientation_equals_the_first(sprites):
    classes = sprites.factors(random_indices(64))
    first, last = classes.clone(), classes.clone()
    first[:, 2], last[:, 2] = 0, 39
    assert torch.equal(sprites.images(sprites.index(first)), sprites.images(sprites.index(last)))


def test_drawing_equals_the_stored_images(sprites):
    index = random_indices(1500)
    assert torch.equal(draw_sprites(values_of(sprites, index)), sprites.images(index))


@pytest.mark.parametrize("size", [8, 29])
def test_drawing_equals_the_stored_images_of_other_sizes(cache, size):
    data, index = Sprites(size=size), random_indices(1000)
    assert torch.equal(draw_sprites(values_of(data, index), size=size), data.images(index))


def test_images_are_cached(sprites, cache, monkeypatch):
    monkeypatch.setattr("unweave.data.synthetic.sprites.render_windows", lambda side: pytest.fail("rendered again"))
    again = Sprites()
    assert torch.equal(again.rows_NH, sprites.rows_NH)
    assert max(file.stat().st_size for file in cache.glob("sprites-*")) < 3_000_000


def test_area_of_continuous_antialiased_drawing():
    """The sum of the pixels is the area of the polygon."""
    generator = torch.Generator().manual_seed(1)
    low, high = torch.tensor([1.0, 0.5, 0.0, 0.0, 0.0]), torch.tensor([3.0, 1.0, 2 * math.pi, 1.0, 1.0])
    values = low + (high - low) * torch.rand(60, 5, generator=generator)
    values[:, 0] = values[:, 0].round()
    x, y = outlines().unbind(-1)
    unit = (x * y.roll(-1, 1) - y * x.roll(-1, 1)).sum(1).abs() / 2
    area = unit[values[:, 0].long() - 1] * (9.6 * values[:, 1]) ** 2
    drawn = draw_sprites(values, antialias=4).sum((1, 2, 3))
    assert ((drawn - area) / area).abs().max() < 0.02


def test_the_sprite_moves_in_proportion_to_its_position():
    positions = torch.linspace(0.2, 0.21, 50)
    values = torch.tensor([3.0, 0.8, 0.4, 0.0, 0.5]).repeat(50, 1)
    values[:, 3] = positions
    x = draw_sprites(values, antialias=8)[:, 0]
    centre = (x.sum(1) * (torch.arange(64) + 0.5)).sum(1) / x.sum((1, 2))
    assert (centre - centre[0] - 32 * (positions - positions[0])).abs().max() < 0.03


def test_twice_the_size_is_similar(sprites):
    index = random_indices(100)
    large = F.avg_pool2d(draw_sprites(values_of(sprites, index), size=128), 2)
    assert (large - sprites.images(index)).abs().mean() < 0.01


def test_antialiased_images(sprites):
    data, index = Sprites(size=32, antialias=4), random_indices(20)
    x = data.images(index)
    assert data.shape == x.shape[1:] and data.info.size == 737280
    assert 2 < len(x.unique()) <= 17
    assert (x - F.avg_pool2d(sprites.images(index), 2)).abs().mean() < 0.02


@pytest.mark.parametrize("options", [{}, {"size": 32, "antialias": 2}, {"size": 96}])
def test_images_can_be_traced(sprites, options):
    data = Sprites(**options) if options else sprites
    traced = make_fx(lambda index: data.images(index))(random_indices(4))
    other = random_indices(4, seed=1)
    assert torch.equal(traced(other), data.images(other))


@pytest.mark.parametrize(
    "argument, value", [("size", 7), ("size", 513), ("size", 64.0), ("antialias", 0), ("antialias", True)]
)
def test_invalid_options_are_refused(argument, value):
    with raises(argument, value=value):
        Sprites(**{argument: value})
    with raises(argument, value=value):
        draw_sprites(torch.ones(1, 5), **{argument: value})


def test_values_of_another_shape_are_refused():
    with raises("values", value=[2, 4]):
        draw_sprites(torch.ones(2, 4))
