"""Videos: the content is constant, the motion is uniform, and every frame shows the sprite of its factors."""

import colorsys

import pytest
import torch
from raises import raises
from torch.fx.experimental.proxy_tensor import make_fx

from unweave.data import Sampler, Sprites, load_data, parse_supervision
from unweave.data.synthetic.clips import Clips
from unweave.data.views import split


@pytest.fixture(scope="module")
def clips(cache):
    return Clips(size=16, motions=20)


def videos_of(clips):
    """Factor classes of every frame [video, frame, factor]."""
    return clips.factors(torch.arange(clips.size)).reshape(clips.videos, clips.frames, -1)


def test_the_content_of_a_video_is_constant(clips):
    factors = videos_of(clips)
    assert clips.size == 108 * 20 * 16 and clips.frames == 16 and not clips.grid
    content = factors[:, :, :3]
    assert torch.equal(content, content[:, :1].expand_as(content))
    contents, counts = content[:, 0].unique(dim=0, return_counts=True)
    assert len(contents) == 108 and (counts == 20).all()


def test_factors_are_inside_their_sizes(clips):
    factors = clips.factors(torch.arange(clips.size))
    assert (factors >= 0).all() and (factors.amax(0) == torch.tensor(clips.factor_sizes) - 1).all()
    assert [len(values) for values in clips.factor_values] == list(clips.factor_sizes)


def test_motion_is_uniform_between_the_walls(clips):
    factors = videos_of(clips)
    for axis in (3, 4):
        step = factors[:, :, axis].diff(dim=1).abs()
        speed = step.mode(1).values
        assert speed.unique().tolist() == [0, 1, 2]
        assert ((step == speed[:, None]).float().mean() > 0.9) and (step <= speed[:, None]).all()
    turn = factors[:, :, 5].diff(dim=1) % 39
    assert (turn == turn[:, :1]).all() and sorted({min(t, t - 39, key=abs) for t in turn[:, 0].tolist()}) == [
        *range(-3, 4)
    ]


def test_every_frame_is_a_coloured_sprite(clips):
    index = torch.arange(0, clips.size, 997)
    factors, sprites = clips.factors(index), Sprites(size=16)
    grey = sprites.images(sprites.index(factors[:, [0, 2, 5, 3, 4]]))
    rgb = torch.tensor([colorsys.hsv_to_rgb(h, 1.0, 1.0) for h in clips.factor_values[1]])[factors[:, 1]]
    x = clips.images(index)
    assert x.shape == (len(index), 3, 16, 16) and torch.equal(x, grey * rgb[:, :, None, None])


@pytest.mark.parametrize("changing, column", [("colour", 1), ("scale", 2)])
def test_one_factor_can_change_with_time(cache, changing, column):
    factors = videos_of(Clips(size=16, motions=1, frames=8, changing=changing))
    rest = [k for k in range(3) if k != column]
    assert torch.equal(factors[:, :, rest], factors[:, :1, rest].expand(-1, 8, 2))
    steps = factors[:, :, column].diff(dim=1)
    assert (steps[:, ::2] == 0).all() and (steps[:, 1::2] != 0).all()


def test_the_seed_determines_the_motion(cache):
    one, again, other = (videos_of(Clips(size=16, motions=2, seed=seed)) for seed in (0, 0, 1))
    assert torch.equal(one, again) and torch.equal(one[..., :3], other[..., :3]) and not torch.equal(one, other)


def test_supervision_from_clips(clips):
    key = torch.tensor(1)
    shown = Sampler(clips, ("clips",), "clips(length=5, stride=3)")(key, 4).clips
    assert shown.shape == (4, 5, 3, 16, 16) and parse_supervision("clips(length=5)", clips).info(clips).members == 5
    by = "groups(by=['shape', 'colour', 'scale'], size=6)"
    plan = Sampler(clips, ("groups",), by).plan(key, 30)
    content = clips.factors(plan["groups"].flatten()).reshape(30, 6, -1)[..., :3]
    assert (
        torch.equal(content, content[:, :1].expand_as(content))
        and parse_supervision(by, clips).info(clips).groups == 108
    )
    train = split(clips, fraction=0.5)
    assert Sampler(train, ("clips",), "clips(length=16)")(key, 2).clips.shape == (2, 16, 3, 16, 16)


def test_images_can_be_traced_and_vmapped(clips):
    index = torch.tensor([[5, 700], [8, 31]])
    images = make_fx(torch.vmap(lambda i: clips.images(i)))(index + 3)(index)
    assert all(torch.equal(images[row], clips.images(index[row])) for row in range(2))


def test_options(cache):
    data = load_data("clips(size=16, frames=4, motions=1)")
    assert data.size == 432 and load_data(data.name, **data.options).info == data.info
    for argument, value in [("frames", 1), ("changing", "shape")]:
        with raises(argument, value=value):
            load_data("clips", **{argument: value})
