import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch.fx.experimental.proxy_tensor import make_fx

from unweave.data import Rooms
from unweave.data.synthetic.rooms import cast_object, hit_object, render_view
from unweave.errors import UserError


def some(n, seed=0):
    return torch.randint(0, 480000, (n,), generator=torch.Generator().manual_seed(seed))


def decoded(layers):
    """What the stored bytes stand for."""
    return (layers.float() - 30) / 200


def test_what_it_says_of_itself(rooms):
    assert rooms.size == 480000 and rooms.shape == (3, 64, 64)
    assert rooms.factor_sizes == tuple(len(values) for values in rooms.factor_values)
    index = some(100)
    assert torch.equal(rooms.index(rooms.factors(index)), index)
    assert "look-alike" in (Rooms.__doc__ or "") and not rooms.state_dict()


def test_close_to_the_genuine_images(rooms, reference):
    with np.load(reference("shapes3d_genuine_50.npz")) as genuine:
        classes = torch.from_numpy(genuine["factor_indices"].astype(np.int64))
        images = torch.from_numpy(genuine["images"]).permute(0, 3, 1, 2) / 255
    error = (rooms.images(rooms.index(classes)) - images) ** 2
    # the outermost pixels were read from a figure and are mixed with its white page
    inner = error[:, :, 1:-1, 1:-1]
    assert len(images) == 50
    assert error.mean().sqrt() <= 0.03
    assert inner.mean().sqrt() < 0.027
    assert error.mean((1, 2, 3)).sqrt().max() < 0.05


def away_from_edges(layers):
    """Pixels [480, H, W] about which no layer changes much, as far as the wider of the two filters reaches."""
    padded = F.pad(layers, (2, 2, 2, 2), mode="replicate")
    change = F.max_pool2d(padded, 5, 1) + F.max_pool2d(-padded, 5, 1)
    return change.amax(1) < 0.06


def test_close_to_the_reference_layers(rooms, reference):
    """The reference averages the samples of a pixel, we weigh them with a cubic: only edges may differ."""
    with np.load(reference("shapes3d_like_layers.npz")) as stored:
        expected = torch.from_numpy(stored["layers"].reshape(480, 64, 64, 5)).permute(0, 3, 1, 2) / 255
        assert np.allclose(rooms.hue_rgb, stored["hue_rgb"], atol=1e-6)
    off = (decoded(rooms.layers).reshape(480, 5, 64, 64) - expected).abs()
    plain = away_from_edges(expected)
    inside = off.transpose(0, 1)[:, plain]  # [L, pixels]
    assert plain.float().mean() > 0.6
    assert inside[:4].max() < 0.01 and inside[4].max() < 0.06  # the highlight's own border is faint, so not excluded
    assert inside.mean() < 0.0005 and off.mean() < 0.003


def test_mean_colour_of_the_grid(rooms):
    """Over the whole grid the three hues average independently of the geometry."""
    layers = decoded(rooms.layers).mean((0, 2))
    grey = rooms.hue_rgb.mean(0)
    mean = layers[0] * rooms.sky_and_white[0] + layers[1:4].sum() * grey + layers[4]
    published = torch.tensor([0.502585, 0.578760, 0.603450])
    assert (mean - published).abs().max() < 0.006


def test_layers_share_each_pixel(rooms):
    """Together the shares never exceed the pixel, but for the ringing of the filter; no byte is cut off."""
    layers = decoded(rooms.layers)
    assert layers[:, :4].sum(1).max() < 1.06 and layers.min() > -0.1
    assert rooms.layers.min() > 0 and rooms.layers.max() < 255
    assert (layers[:, 3].amax(-1) > 0.4).all()


def test_image_is_colours_times_layers(rooms):
    index = some(3)
    x = rooms.images(index)
    for b in range(3):
        floor, wall, thing = (rooms.hue_rgb[rooms.factors(index)[b, k]] for k in range(3))
        colours = torch.stack([rooms.sky_and_white[0], floor, wall, thing, torch.ones(3)])
        expected = decoded(rooms.layers[index[b] % 480]).T @ colours
        assert torch.allclose(x[b].flatten(1).T, expected.clamp(0, 1), atol=1e-6)
    assert x.dtype == torch.float32 and x.min() >= 0 and x.max() <= 1


@pytest.mark.parametrize("shape", ["cube", "cylinder", "sphere", "capsule"])
def test_hits_lie_on_the_surface(shape):
    """Normals are of length one and face the ray; the top and both sides are where they should be."""
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
def test_other_sizes_resemble(rooms, size):
    layers = cast_object(render_view(-30.0, size), "capsule", 1.25, size).reshape(5, size, size).float()
    view = rooms.layers[7 * 60 + 3 * 15].reshape(5, 64, 64).float()
    small = min(size, 64)
    off = F.adaptive_avg_pool2d(layers, small) - F.adaptive_avg_pool2d(view, small)
    assert off.abs().mean() < 1.0  # of 200


def test_images_can_be_recorded(rooms):
    recorded = make_fx(lambda index: rooms.images(index))(some(4))
    other = some(4, seed=1)
    assert torch.equal(recorded(other), rooms.images(other))


def test_a_second_load_reads_the_cache(rooms, cache, monkeypatch):
    monkeypatch.setattr("unweave.data.synthetic.rooms.cast_store", lambda size: pytest.fail("cast again"))
    assert torch.equal(Rooms().layers, rooms.layers)


@pytest.mark.parametrize("size", [7, 257, 64.0, True])
def test_size_refused(size):
    with pytest.raises(UserError, match="size="):
        Rooms(size=size)
