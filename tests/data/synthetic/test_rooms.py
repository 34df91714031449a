import pytest
import torch
import torch.nn.functional as F
from raises import raises
from torch.fx.experimental.proxy_tensor import make_fx

from unweave.data import Rooms
from unweave.data.synthetic.rooms import cast_object, hit_object, render_view


def random_indices(n, seed=0):
    return torch.randint(0, 480000, (n,), generator=torch.Generator().manual_seed(seed))


def decoded(layers):
    """Return the values of the stored bytes."""
    return (layers.float() - 30) / 200


def test_its_description(rooms):
    assert rooms.size == 480000 and rooms.shape == (3, 64, 64)
    assert rooms.factor_sizes == tuple(len(values) for values in rooms.factor_values)
    index = random_indices(100)
    assert torch.equal(rooms.index(rooms.factors(index)), index)
    assert "look-alike" in (Rooms.__doc__ or "") and not rooms.state_dict()


def test_layers_have_the_verified_means(rooms):
    """Recorded from layers within 0.003 of the reference layers and images within 0.03 (RMS) of 3D Shapes."""
    means = torch.tensor([85.0674, 83.5071, 85.3724, 53.2817, 30.3891])
    assert (rooms.layers.float().mean((0, 2)) - means).abs().max() < 0.05


def test_mean_colour_of_the_grid(rooms):
    """Averaged over the grid, the hues are independent of the geometry."""
    layers = decoded(rooms.layers).mean((0, 2))
    grey = rooms.hue_rgb.mean(0)
    mean = layers[0] * rooms.sky_and_white[0] + layers[1:4].sum() * grey + layers[4]
    published = torch.tensor([0.502585, 0.578760, 0.603450])
    assert (mean - published).abs().max() < 0.006


def test_layers_share_each_pixel(rooms):
    """The shares of a pixel sum to at most 1, except for the ringing of the filter; no byte is clipped."""
    layers = decoded(rooms.layers)
    assert layers[:, :4].sum(1).max() < 1.06 and layers.min() > -0.1
    assert rooms.layers.min() > 0 and rooms.layers.max() < 255
    assert (layers[:, 3].amax(-1) > 0.4).all()


def test_images_are_colours_times_layers(rooms):
    index = random_indices(3)
    x = rooms.images(index)
    for b in range(3):
        floor, wall, object = (rooms.hue_rgb[rooms.factors(index)[b, k]] for k in range(3))
        colours = torch.stack([rooms.sky_and_white[0], floor, wall, object, torch.ones(3)])
        expected = decoded(rooms.layers[index[b] % 480]).T @ colours
        assert torch.allclose(x[b].flatten(1).T, expected.clamp(0, 1), atol=1e-6)
    assert x.dtype == torch.float32 and x.min() >= 0 and x.max() <= 1


@pytest.mark.parametrize("shape", ["cube", "cylinder", "sphere", "capsule"])
def test_hits_lie_on_the_surface(shape):
    """Normals have length one and face the ray; distances to the top and the sides are correct."""
    half, height = {"cube": (0.35, 0.7), "cylinder": (0.375, 0.75), "sphere": (0.425, 0.85), "capsule": (0.325, 1.3)}[
        shape
    ]
    start = torch.tensor([[0.0, -3.0, 3.0], [0.0, 0.0, 0.0], [3.0, height / 2, height / 2]])
    ray = torch.tensor([[1e-4, 1.0, -1.0], [1e-4, 1e-4, 1e-4], [-1.0, 1e-4, 1e-4]])
    t, normal = hit_object(start, ray, shape, 1.0)
    assert torch.allclose(t, torch.tensor([3.0 - height, 3.0 - half, 3.0 - half]), atol=2e-3)
    assert torch.allclose(normal.norm(dim=0), torch.ones(3), atol=1e-3)
    assert ((normal * ray).sum(0) < -0.99).all()
    away = hit_object(start, -ray, shape, 1.0)[0]
    assert (away > 1e8).all()


@pytest.mark.parametrize("size", [32, 128])
def test_other_sizes_are_similar(rooms, size):
    layers = cast_object(render_view(-30.0, size), "capsule", 1.25, size).reshape(5, size, size).float()
    view = rooms.layers[7 * 60 + 3 * 15].reshape(5, 64, 64).float()
    small = min(size, 64)
    off = F.adaptive_avg_pool2d(layers, small) - F.adaptive_avg_pool2d(view, small)
    assert off.abs().mean() < 1.0  # of 200


def test_images_can_be_traced(rooms):
    traced = make_fx(lambda index: rooms.images(index))(random_indices(4))
    other = random_indices(4, seed=1)
    assert torch.equal(traced(other), rooms.images(other))


def test_views_are_cached(rooms, cache, monkeypatch):
    monkeypatch.setattr("unweave.data.synthetic.rooms.cast_store", lambda size: pytest.fail("cast again"))
    assert torch.equal(Rooms().layers, rooms.layers)


@pytest.mark.parametrize("size", [7, 257, 64.0, True])
def test_invalid_sizes_are_refused(size):
    with raises("size", value=size):
        Rooms(size=size)
