import math
import zipfile

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch.fx.experimental.proxy_tensor import make_fx

from unweave.data import Sprites, draw_sprites
from unweave.data.synthetic.sprites import outlines
from unweave.errors import UserError


def values_of(data, index):
    classes = data.factors(index)
    tables = [torch.tensor(values, dtype=torch.float64) for values in data.factor_values]
    return torch.stack([table[classes[:, k]] for k, table in enumerate(tables)], dim=1)


def some(n, seed=0):
    return torch.randint(0, 737280, (n,), generator=torch.Generator().manual_seed(seed))


def pack(images):
    return np.packbits(images, axis=-1, bitorder="little").view(np.int64)[..., 0]


def test_what_it_says_of_itself(sprites):
    assert sprites.size == 737280 and sprites.shape == (1, 64, 64)
    assert sprites.factor_sizes == tuple(len(values) for values in sprites.factor_values)
    index = some(100)
    assert torch.equal(sprites.index(sprites.factors(index)), index)
    assert sprites.factors(torch.tensor([1, 32, 737279])).tolist() == [
        [0, 0, 0, 0, 1],
        [0, 0, 0, 1, 0],
        [2, 5, 39, 31, 31],
    ]
    assert not sprites.state_dict()


def test_genuine_images(sprites, reference):
    with np.load(reference("dsprites_genuine_363.npz")) as genuine:
        classes, images = torch.from_numpy(genuine["latents_classes"][:, 1:]), torch.from_numpy(genuine["imgs"])
    drawn = sprites.images(sprites.index(classes))
    assert len(images) == 363
    assert torch.equal(drawn[:, 0], images.float())


def test_every_image(sprites, reference):
    """All 737280, read in pieces: unpacked they are 3 GB."""
    rows = sprites.rows_NH.numpy()
    with zipfile.ZipFile(reference("dsprites_rerendered.npz")) as archive, archive.open("imgs.npy") as file:
        assert np.lib.format.read_magic(file) == (1, 0)
        shape, _, dtype = np.lib.format.read_array_header_1_0(file)
        assert shape == (737280, 64, 64) and dtype == np.uint8
        step = 8192
        for start in range(0, 737280, step):
            piece = np.frombuffer(file.read(step * 4096), dtype=np.uint8).reshape(step, 64, 64)
            assert np.array_equal(pack(piece), rows[start : start + step]), f"images {start} to {start + step}"


def test_number_of_ones(sprites):
    count = sum(int(np.unpackbits(part.numpy().view(np.uint8)).sum()) for part in sprites.rows_NH.split(65536))
    assert count == 128_328_864


def test_images_are_float_zero_or_one(sprites):
    x = sprites.images(some(16))
    assert x.shape == (16, 1, 64, 64) and x.dtype == torch.float32
    assert set(x.unique().tolist()) == {0.0, 1.0}


def test_the_full_turn_repeats_the_first(sprites):
    classes = sprites.factors(some(64))
    first, last = classes.clone(), classes.clone()
    first[:, 2], last[:, 2] = 0, 39
    assert torch.equal(sprites.images(sprites.index(first)), sprites.images(sprites.index(last)))


def test_drawing_equals_the_store(sprites):
    index = some(1500)
    assert torch.equal(draw_sprites(values_of(sprites, index)), sprites.images(index))


@pytest.mark.parametrize("size", [8, 29])
def test_small_store_equals_drawing(cache, size):
    data, index = Sprites(size=size), some(1000)
    assert torch.equal(draw_sprites(values_of(data, index), size=size), data.images(index))


def test_a_second_load_reads_the_cache(sprites, cache, monkeypatch):
    monkeypatch.setattr("unweave.data.synthetic.sprites.render_windows", lambda side: pytest.fail("rendered again"))
    again = Sprites()
    assert torch.equal(again.rows_NH, sprites.rows_NH)
    assert max(file.stat().st_size for file in cache.glob("sprites-*")) < 3_000_000


def test_area_of_continuous_antialiased_drawing():
    """The grey sum of a picture is the area of its polygon."""
    generator = torch.Generator().manual_seed(1)
    low, high = torch.tensor([1.0, 0.5, 0.0, 0.0, 0.0]), torch.tensor([3.0, 1.0, 2 * math.pi, 1.0, 1.0])
    values = low + (high - low) * torch.rand(60, 5, generator=generator)
    values[:, 0] = values[:, 0].round()
    x, y = outlines().unbind(-1)
    unit = (x * y.roll(-1, 1) - y * x.roll(-1, 1)).sum(1).abs() / 2
    area = unit[values[:, 0].long() - 1] * (9.6 * values[:, 1]) ** 2
    drawn = draw_sprites(values, antialias=4).sum((1, 2, 3))
    assert ((drawn - area) / area).abs().max() < 0.02


def test_continuous_position_moves_the_picture_evenly():
    positions = torch.linspace(0.2, 0.21, 50)
    values = torch.tensor([3.0, 0.8, 0.4, 0.0, 0.5]).repeat(50, 1)
    values[:, 3] = positions
    x = draw_sprites(values, antialias=8)[:, 0]
    centre = (x.sum(1) * (torch.arange(64) + 0.5)).sum(1) / x.sum((1, 2))
    assert (centre - centre[0] - 32 * (positions - positions[0])).abs().max() < 0.03


def test_twice_the_size_halved_resembles(sprites):
    index = some(100)
    large = F.avg_pool2d(draw_sprites(values_of(sprites, index), size=128), 2)
    assert (large - sprites.images(index)).abs().mean() < 0.01


def test_antialiased_set(sprites):
    data, index = Sprites(size=32, antialias=4), some(20)
    x = data.images(index)
    assert data.shape == x.shape[1:] and data.info.size == 737280
    assert 2 < len(x.unique()) <= 17
    assert (x - F.avg_pool2d(sprites.images(index), 2)).abs().mean() < 0.02


@pytest.mark.parametrize("options", [{}, {"size": 32, "antialias": 2}, {"size": 96}])
def test_images_can_be_recorded(sprites, options):
    data = Sprites(**options) if options else sprites
    recorded = make_fx(lambda index: data.images(index))(some(4))
    other = some(4, seed=1)
    assert torch.equal(recorded(other), data.images(other))


@pytest.mark.parametrize(
    "options, said",
    [
        ({"size": 7}, "size=7 .* 8 to 512"),
        ({"size": 513}, "size=513"),
        ({"size": 64.0}, "size=64.0"),
        ({"antialias": 0}, "antialias=0 .* 1 to 8"),
        ({"antialias": True}, "antialias=True"),
    ],
)
def test_refused(options, said):
    with pytest.raises(UserError, match=said):
        Sprites(**options)
    with pytest.raises(UserError, match=said):
        draw_sprites(torch.ones(1, 5), **options)


def test_values_of_another_shape_are_refused():
    with pytest.raises(UserError, match=r"\(2, 4\)"):
        draw_sprites(torch.ones(2, 4))
