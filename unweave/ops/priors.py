"""Prior distributions of codes, as functions of noise.

Mixture and swiss roll fill the first two latents; the other latents are standard normal. With the categorical prior all
latents after the one-hot class are.

Shape letters: B batch, Z latents, Y classes.
"""

import math

import torch
from torch import Tensor

from unweave.contract import Noise, normal, uniform

PETALS = 10
_RADIUS, _LONG, _WIDE = 2.0, 0.5, 0.15  # of the petals: distance, standard deviations along and across
_FIRST, _LAST, _SHRINK, _BLUR = 1.5 * math.pi, 4.5 * math.pi, 0.2, 0.05  # of the roll: angles, scale, thickness

PRIORS: dict[str, dict[str, Noise]] = {
    "normal": {"prior": normal("B", "Z")},
    "uniform": {"prior": uniform("B", "Z")},
    "mixture": {"prior": normal("B", "Z"), "place": uniform("B", 1)},
    "swiss_roll": {"prior": normal("B", "Z"), "place": uniform("B", 1)},
    "categorical": {"prior": normal("B", "Z"), "place": uniform("B", 1)},
}


def petals(place_B: Tensor, noise_B2: Tensor, components: int) -> Tensor:
    """Return samples [B, 2] of `components` Gaussians in a ring, longer in the radial direction."""
    angle_B = (place_B * components).floor() * (2.0 * math.pi / components)
    out_B, across_B = _RADIUS + _LONG * noise_B2[:, 0], _WIDE * noise_B2[:, 1]
    cos_B, sin_B = angle_B.cos(), angle_B.sin()
    return torch.stack([out_B * cos_B - across_B * sin_B, out_B * sin_B + across_B * cos_B], 1)


def swiss_roll(place_B: Tensor, noise_B2: Tensor) -> Tensor:
    """Return samples [B, 2] of a spiral of one and a half turns, nearly uniform along its length, with small noise."""
    angle_B = (_FIRST**2 + place_B * (_LAST**2 - _FIRST**2)).sqrt()
    curve_B2 = torch.stack([angle_B.cos(), angle_B.sin()], 1) * (_SHRINK * angle_B).unsqueeze(1)
    return curve_B2 + _BLUR * noise_B2


def prior_sample(prior: str, noise: dict[str, Tensor], components: int = PETALS) -> Tensor:
    """Return a sample [B, Z] of the named prior from the noise in `PRIORS`.

    `components` is the number of Gaussians of the mixture, or of classes of the categorical prior.
    """
    drawn_BZ = noise["prior"]
    if prior == "normal":
        return drawn_BZ
    if prior == "uniform":
        return 2.0 * drawn_BZ - 1.0
    place_B = noise["place"][:, 0]
    if prior == "categorical":
        return torch.cat([one_hot_sample(place_B, components), drawn_BZ[:, components:]], 1)
    flat_B2 = drawn_BZ[:, :2]
    shape_B2 = petals(place_B, flat_B2, components) if prior == "mixture" else swiss_roll(place_B, flat_B2)
    return torch.cat([shape_B2, drawn_BZ[:, 2:]], 1)


def one_hot_sample(place_B: Tensor, classes: int) -> Tensor:
    """Return one-hot vectors [B, Y] of equally likely classes, from uniform numbers in [0, 1)."""
    chosen_B = (place_B * classes).floor()
    return (chosen_B[:, None] == torch.arange(classes, device=place_B.device)).to(place_B.dtype)
