"""Videos of sprites that move and rotate: the content of a video is constant, the pose changes.

Every frame is a coloured image of dSprites. Start, velocity and rotation of a sprite are hashes of the index of the
video, so that nothing is stored.

Shape letters: B batch, H height, W width.
"""

import colorsys

import torch
from torch import Tensor
from torch.nn import Buffer

from unweave.data.dataset import Dataset
from unweave.data.synthetic.sprites import ORIENTATIONS, POSITIONS, SCALES, SHAPES, Sprites
from unweave.errors import check_choice, check_integer
from unweave.ops.noise import fold, scale_bits

HUES = tuple(i / 6 for i in range(6))
_TURNS = len(ORIENTATIONS) - 1  # the last equals the first
_MAX_SPEED, _MAX_SPIN = 2, 3  # classes per frame
_CHANGE_EVERY = 2  # frames between changes of a factor other than the pose


def _bounce(position: Tensor, last: int) -> Tensor:
    """Reflect a position at 0 and at `last`."""
    return last - (position % (2 * last) - last).abs()


class Clips(Dataset):
    """Videos of coloured sprites: shape, colour and scale are the content, position and orientation the pose.

    Each of the 108 contents appears in `motions` videos of `frames` frames. An observation is a frame: frame t of
    video v has the index v * frames + t, and videos 0 to motions - 1 show the first content. If `changing` is
    "colour" or "scale", this factor changes with time as well.
    """

    factor_names = ("shape", "colour", "scale", "posX", "posY", "orientation")
    factor_sizes = (len(SHAPES), len(HUES), len(SCALES), len(POSITIONS), len(POSITIONS), _TURNS)
    factor_values = (SHAPES, HUES, SCALES, POSITIONS, POSITIONS, ORIENTATIONS[:-1])
    grid = False
    renderer_version = 1

    def __init__(
        self, *, size: int = 64, frames: int = 16, motions: int = 100, changing: str = "none", seed: int = 0
    ) -> None:
        super().__init__()
        check_choice("changing", changing, ("none", "colour", "scale"))
        self.frames, self.motions = check_integer("frames", frames, 2, 1000), check_integer("motions", motions, 1, 9999)
        self.key = Buffer(fold(torch.tensor(check_integer("seed", seed, 0, 2**62)), "clips"), persistent=False)
        self.changing, self.sprites = changing, Sprites(size=size)
        self.videos = len(SHAPES) * len(HUES) * len(SCALES) * motions
        self.name, self.shape, self.size = "clips", (3, size, size), self.videos * frames
        self.options = {"size": size, "frames": frames, "motions": motions, "changing": changing, "seed": seed}
        self.rgb = Buffer(torch.tensor([colorsys.hsv_to_rgb(h, 1.0, 1.0) for h in HUES]), persistent=False)

    def factors(self, index_B: Tensor) -> Tensor:
        video_B, time_B = index_B // self.frames, index_B % self.frames
        content_B = video_B // self.motions
        scale_B, colour_B = content_B % len(SCALES), content_B // len(SCALES) % len(HUES)
        if self.changing == "scale":
            scale_B = _bounce(scale_B + time_B // _CHANGE_EVERY, len(SCALES) - 1)
        if self.changing == "colour":
            colour_B = (colour_B + time_B // _CHANGE_EVERY) % len(HUES)
        shape_B = content_B // (len(SCALES) * len(HUES))
        return torch.stack([shape_B, colour_B, scale_B, *self._pose(video_B, time_B)], dim=-1)

    def _pose(self, video_B: Tensor, time_B: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return position and orientation: uniform motion between the walls, uniform rotation."""
        key_B, last = fold(self.key, video_B), len(POSITIONS) - 1

        def drawn(name: str, high: int) -> Tensor:
            return scale_bits(fold(key_B, name), high)

        def moved(axis: str) -> Tensor:
            start_B, speed_B = drawn(f"start {axis}", last + 1), drawn(f"speed {axis}", 2 * _MAX_SPEED + 1) - _MAX_SPEED
            return _bounce(start_B + speed_B * time_B, last)

        turn_B = drawn("angle", _TURNS) + (drawn("spin", 2 * _MAX_SPIN + 1) - _MAX_SPIN) * time_B
        return moved("x"), moved("y"), turn_B % _TURNS

    def images(self, index_B: Tensor) -> Tensor:
        shape_B, colour_B, scale_B, x_B, y_B, turn_B = self.factors(index_B).unbind(-1)
        drawn_B1HW = self.sprites.images(self.sprites.index(torch.stack([shape_B, scale_B, turn_B, x_B, y_B], dim=-1)))
        return drawn_B1HW * self.rgb[colour_B][:, :, None, None]
