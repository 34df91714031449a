"""Every data set in the list: its description is true, and images and factors are functions of the index."""

import json

import pytest
import torch
from published_files import WRITERS
from torch.fx.experimental.proxy_tensor import make_fx

from unweave.data import DATASETS, load_data
from unweave.data.published import FILES
from unweave.data.views import noisy, split, subset

SMALL = {
    "sprites": {"size": 16},
    "rooms": {"size": 8},
    "digits": {"size": 16},
    "colour_sprites": {"size": 16},
    "noisy_sprites": {"size": 16},
    "textured_sprites": {"size": 16},
    "clips": {"size": 16, "frames": 4, "motions": 2},
}  # options of the rendered data sets; the published ones are read from files of `published_files`


@pytest.fixture(scope="module", params=DATASETS)
def data(request, tmp_path_factory):
    name = request.param
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("UNWEAVE_CACHE", str(tmp_path_factory.getbasetemp() / "data_sets_cache"))
        if name in SMALL:
            yield load_data(name, **SMALL[name])
        else:
            folder = tmp_path_factory.mktemp(name)
            WRITERS[name](folder)
            yield load_data(name, path=folder)


def indices(data, count=6):
    return torch.randint(0, data.size, (count,), generator=torch.Generator().manual_seed(0))


def test_every_data_set_is_in_the_table():
    assert set(SMALL) | set(WRITERS) == set(DATASETS) and set(WRITERS) == set(FILES)


def test_images_have_the_stated_shape_and_range(data):
    x = data.images(indices(data))
    assert x.dtype == torch.float32 and x.shape == (6, *data.shape)
    assert x.min() >= 0 and x.max() <= 1 and x.std() > 0
    assert data.info.shape == data.shape and data.info.size == data.size
    rows = data.raw_images(indices(data))
    assert torch.equal(rows / 255 if rows.dtype == torch.uint8 else rows, x)


def test_the_factor_table_is_complete(data):
    assert len(data.factor_names) == len(set(data.factor_names)) == len(data.factor_sizes) == len(data.factor_values)
    assert tuple(map(len, data.factor_values)) == data.factor_sizes
    assert all(len(set(values)) == len(values) for values in data.factor_values)
    assert set(data.factor_types) <= {"discrete", "continuous"} and len(data.factor_types) == len(data.factor_names)
    factors = data.factors(torch.arange(min(data.size, 20_000)))
    assert factors.dtype == torch.int64 and factors.shape[1] == len(data.factor_names)
    assert (factors >= 0).all() and (factors < torch.tensor(data.factor_sizes)).all()
    assert torch.equal(data.values(indices(data)), data.factors(indices(data)).float())


def test_a_grid_is_indexed_by_its_factors(data):
    index = indices(data, 100)
    if data.grid:
        assert data.size == torch.tensor(data.factor_sizes).prod()
        assert torch.equal(data.index(data.factors(index)), index)
    assert data.size % data.frames == 0


def test_the_same_index_has_the_same_image(data):
    index = indices(data)
    x = data.images(index)
    assert torch.equal(data.images(index), x) and torch.equal(data.images(index.flip(0)), x.flip(0))
    assert all(torch.equal(data.images(index[n : n + 1])[0], x[n]) for n in range(3))


def test_images_can_be_traced_and_vmapped(data):
    index = indices(data).reshape(2, 3)
    traced = make_fx(torch.vmap(lambda i: (data.images(i), data.factors(i))))(index.flip(0))
    images, factors = traced(index)
    for row in range(2):
        torch.testing.assert_close(images[row], data.images(index[row]))
        assert torch.equal(factors[row], data.factors(index[row]))


def test_its_options_open_it_again(data):
    again, index = load_data(data.name, **json.loads(json.dumps(data.options))), indices(data)
    assert torch.equal(again.images(index), data.images(index)) and again.factor_values == data.factor_values
    assert torch.equal(again.factors(index), data.factors(index)) and again.info == data.info


def test_it_is_stored_without_weights(data):
    assert not list(data.parameters()) and not data.state_dict()


def test_views_refer_to_its_observations(data):
    views = [split(data, part=part, fraction=0.5) for part in ("train", "validation")]
    assert sum(view.size for view in views) == data.size
    for view in [*views, subset(data, indices=[0, data.size - 1]), noisy(data, sigma=0.01)]:
        index = indices(view, 4)
        origin = view.origin_index(index)
        assert view.origin is data and view.factor_names == data.factor_names and view.shape == data.shape
        assert torch.equal(view.factors(index), data.factors(origin))
        assert (view.images(index) - data.images(origin)).abs().max() < 0.1
