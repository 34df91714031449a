"""Sprites with a nuisance that is not a factor: random colours, noise, or a texture in the background.

Variants of color-, noisy- and scream-dSprites (Locatello et al. 2019). There the nuisance is drawn again whenever an
image is drawn. Here it is a hash of the observation's index and a seed, so that an index always has the same image.

Shape letters: B batch, C channels, H height, W width, S side of the canvas that textures are cropped from.
"""

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.nn import Buffer

from unweave.data.dataset import Dataset
from unweave.data.synthetic.sprites import Sprites
from unweave.errors import check_choice, check_integer
from unweave.ops.noise import fold, random_bits, random_uniform, scale_bits

_OCTAVES = 6


def _uniform(key_B: Tensor, *shape: int) -> Tensor:
    """Return uniform numbers [B, *shape], one stream per key."""
    return torch.vmap(lambda key: random_uniform(key, shape))(key_B)


def _noise(key_B: Tensor, side: int) -> Tensor:
    """Return uniform numbers [B, 3, side, side]; the channels of a pixel are 21 bits each of one hash."""
    bits_BHW = torch.vmap(lambda key: random_bits(key, (side, side)))(key_B)
    channels = [(bits_BHW >> shift) & (2**21 - 1) for shift in (0, 21, 42)]
    return torch.stack(channels, dim=1).float() * 2.0**-21


class _SpritesWithNuisance(Dataset):
    """The grid of sprites, three channels, and a key for the nuisance."""

    factor_names, factor_sizes, factor_values = Sprites.factor_names, Sprites.factor_sizes, Sprites.factor_values

    def __init__(self, name: str, size: int, seed: int, **options: object) -> None:
        super().__init__()
        self.key = Buffer(fold(torch.tensor(check_integer("seed", seed, 0, 2**62)), name), persistent=False)
        self.sprites = Sprites(size=size)
        self.name, self.shape, self.size = name, (3, size, size), self.sprites.size
        self.options = {"size": size, "seed": seed, **options}


class ColourSprites(_SpritesWithNuisance):
    """Sprites in a random colour on black, or white sprites on a random dark colour (on="background").

    The colour is not a factor: each channel is uniform in 0.5 to 1 for sprites, in 0 to 0.5 for backgrounds.
    """

    renderer_version = 1

    def __init__(self, *, size: int = 64, on: str = "sprite", seed: int = 0) -> None:
        check_choice("on", on, ("sprite", "background"))
        super().__init__("colour_sprites", size, seed, on=on)
        self.on = on

    def images(self, index_B: Tensor) -> Tensor:
        mask_B1HW = self.sprites.images(index_B)
        colour_B311 = _uniform(fold(self.key, index_B), 3, 1, 1)
        if self.on == "sprite":
            return mask_B1HW * (0.5 + 0.5 * colour_B311)
        return mask_B1HW + (1.0 - mask_B1HW) * (0.5 * colour_B311)


class NoisySprites(_SpritesWithNuisance):
    """White sprites on noise: every channel of every pixel of the background is uniform in 0 to 1."""

    renderer_version = 1

    def __init__(self, *, size: int = 64, seed: int = 0) -> None:
        super().__init__("noisy_sprites", size, seed)

    def images(self, index_B: Tensor) -> Tensor:
        return (self.sprites.images(index_B) + _noise(fold(self.key, index_B), self.shape[1])).clamp_max(1.0)


class TexturedSprites(_SpritesWithNuisance):
    """Sprites on a random crop of a texture mixed with a random colour; the sprite inverts its background.

    Scream-dSprites with a generated texture instead of the painting.
    """

    renderer_version = 1

    def __init__(self, *, size: int = 64, seed: int = 0) -> None:
        super().__init__("textured_sprites", size, seed)
        self.canvas_SSC = Buffer(texture(4 * size).movedim(0, -1).contiguous(), persistent=False)

    def images(self, index_B: Tensor) -> Tensor:
        key_B, side = fold(self.key, index_B), self.shape[1]
        pixel = torch.arange(side, device=index_B.device)
        row_BH, column_BW = (
            scale_bits(fold(key_B, axis), len(self.canvas_SSC) - side + 1)[:, None] + pixel
            for axis in ("row", "column")
        )
        patch = self.canvas_SSC[row_BH[:, :, None], column_BW[:, None, :]].movedim(-1, 1)
        background = 0.5 * (patch + _uniform(fold(key_B, "colour"), 3, 1, 1))
        return torch.where(self.sprites.images(index_B) > 0.5, 1.0 - background, background)


def texture(side: int) -> Tensor:
    """Return a texture [3, side, side] in 0..1: smooth noise at several scales, weaker at finer ones."""
    key, total = fold(torch.tensor(0), "texture"), torch.zeros(1, 3, side, side)
    for octave in range(_OCTAVES):
        coarse = random_uniform(fold(key, octave), (1, 3, 4 << octave, 4 << octave))
        total += F.interpolate(coarse, (side, side), mode="bicubic", align_corners=False) * 0.8**octave
    low, high = total.amin((0, 2, 3), keepdim=True), total.amax((0, 2, 3), keepdim=True)
    return ((total - low) / (high - low))[0]
