"""Sprites with a nuisance: the published definitions, and the same image for the same index."""

import pytest
import torch
from raises import raises
from scipy import stats
from torch.fx.experimental.proxy_tensor import make_fx

from unweave.data import Sprites, load_data
from unweave.data.synthetic.backgrounds import ColourSprites, NoisySprites, TexturedSprites, texture

CLASSES = [ColourSprites, NoisySprites, TexturedSprites]
INDEX = torch.arange(7, 737280, 1301)  # 567 of them


@pytest.fixture(scope="module")
def mask(cache):
    return Sprites(size=16).images(INDEX)[:, 0] > 0


@pytest.fixture(scope="module")
def made(cache):
    return {cls: cls(size=16) for cls in CLASSES}


@pytest.mark.parametrize("cls", CLASSES)
def test_images_are_functions_of_the_index(made, cls):
    data = made[cls]
    x = data.images(INDEX)
    assert x.shape == (len(INDEX), 3, 16, 16) and x.min() >= 0 and x.max() <= 1 and x.dtype == torch.float32
    assert data.grid and data.factor_sizes == Sprites.factor_sizes and data.size == 737280
    assert torch.equal(data.images(INDEX[40:50]), x[40:50])
    assert not torch.equal(cls(size=16, seed=1).images(INDEX[:50]), x[:50])
    again = load_data(data.name, **data.options)
    assert type(again) is cls and torch.equal(again.images(INDEX[:20]), x[:20])


@pytest.mark.parametrize("cls", CLASSES)
def test_images_can_be_traced_and_vmapped(made, cls):
    index = torch.tensor([[5, 7000], [80, 31]])
    images = make_fx(torch.vmap(lambda i: made[cls].images(i)))(index + 3)(index)
    assert all(torch.equal(images[row], made[cls].images(index[row])) for row in range(2))


def test_sprites_have_one_colour_each(made, mask):
    """Each channel uniform in 0.5 to 1, black around."""
    x = made[ColourSprites].images(INDEX)
    assert (x.movedim(1, -1)[~mask] == 0).all()
    colour = x.amax((2, 3))
    assert torch.equal(x, mask[:, None] * colour[:, :, None, None])
    for channel in colour.T:
        assert stats.kstest(channel.numpy(), stats.uniform(0.5, 0.5).cdf).pvalue > 1e-3
    assert abs(float(torch.corrcoef(colour.T)[0, 1])) < 0.15


def test_or_backgrounds_have_one_colour_each(mask):
    x = ColourSprites(size=16, on="background").images(INDEX)
    assert (x.movedim(1, -1)[mask] == 1).all()
    colour = x.amin((2, 3))
    assert torch.equal(x.movedim(1, -1)[~mask], colour[:, None, None].expand(-1, 16, 16, 3)[~mask])
    assert stats.kstest(colour[:, 0].numpy(), stats.uniform(0.0, 0.5).cdf).pvalue > 1e-3


def test_noise_is_uniform_around_white_sprites(made, mask):
    x = made[NoisySprites].images(INDEX).movedim(1, -1)
    assert (x[mask] == 1).all()
    noise = x[~mask]
    assert stats.kstest(noise[::50].flatten().numpy(), stats.uniform(0, 1).cdf).pvalue > 1e-3
    assert abs(float(torch.corrcoef(noise.T)[0, 1])) < 0.02  # of two channels
    assert abs(float(torch.corrcoef(torch.stack([noise[:-1, 0], noise[1:, 0]]))[0, 1])) < 0.02  # of two pixels


def test_sprites_invert_the_texture(made, mask):
    """The background is the mean of a crop of the canvas and one colour; the sprite is its negative."""
    data = made[TexturedSprites]
    x = data.images(INDEX)
    ground = torch.where(mask[:, None], 1 - x, x)
    canvas = data.canvas_SSC.movedim(-1, 0)
    assert canvas.shape == (3, 64, 64) and canvas.min() == 0 and canvas.max() == 1
    pieces = canvas.unfold(1, 16, 1).unfold(2, 16, 1).reshape(3, -1, 256)
    for image in ground[:20].flatten(2):
        colour = 2 * image[:, None] - pieces  # constant for the crop that was used
        spread = colour.std(-1).amax(0)
        best = int(spread.argmin())
        assert spread[best] < 1e-5 and (colour[:, best].mean(-1) > -1e-5).all() and (colour[:, best].mean(-1) < 1).all()
    assert texture(64).std() > 0.1


def test_invalid_options_are_refused():
    with raises("on", value="sky", accepted=["sprite", "background"]):
        load_data("colour_sprites(on='sky')")
    with raises("seed", value=-1):
        load_data("noisy_sprites(seed=-1)")
