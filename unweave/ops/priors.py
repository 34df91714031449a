"""Prior distributions of codes, as functions of noise.

Mixture and swiss roll fill the first two latents; the other latents are standard normal. With the categorical prior all
latents after the one-hot class are.

Shape letters: B batch, Z latents, Y classes.
"""

import math

import torch
from torch import Tensor

from unweave.contract import Noise, normal, uniform

COMPONENTS = 10
_RADIUS, _RADIAL, _TANGENTIAL = 2.0, 0.5, 0.15  # of the ring's Gaussians: distance, standard deviations
_FIRST, _LAST, _SHRINK, _BLUR = 1.5 * math.pi, 4.5 * math.pi, 0.2, 0.05  # of the roll: angles, scale, thickness

# The noise of each prior. "place" selects the Gaussian, the class or the position on the spiral.
PRIORS: dict[str, dict[str, Noise]] = {
    "normal": {"prior": normal("B", "Z")},
    "uniform": {"prior": uniform("B", "Z")},
    "mixture": {"prior": normal("B", "Z"), "place": uniform("B", 1)},
    "swiss_roll": {"prior": normal("B", "Z"), "place": uniform("B", 1)},
    "categorical": {"prior": normal("B", "Z"), "place": uniform("B", 1)},
}


def gaussian_ring(uniform_B: Tensor, noise_B2: Tensor, components: int) -> Tensor:
    """Return samples [B, 2] of `components` Gaussians in a ring, longer in the radial direction."""
    angle_B = (uniform_B * components).floor() * (2.0 * math.pi / components)
    out_B, across_B = _RADIUS + _RADIAL * noise_B2[:, 0], _TANGENTIAL * noise_B2[:, 1]
    cos_B, sin_B = angle_B.cos(), angle_B.sin()
    return torch.stack([out_B * cos_B - across_B * sin_B, out_B * sin_B + across_B * cos_B], 1)


def swiss_roll(uniform_B: Tensor, noise_B2: Tensor) -> Tensor:
    """Return samples [B, 2] of a spiral of one and a half turns, nearly uniform along its length, with small noise."""
    angle_B = (_FIRST**2 + uniform_B * (_LAST**2 - _FIRST**2)).sqrt()
    curve_B2 = torch.stack([angle_B.cos(), angle_B.sin()], 1) * (_SHRINK * angle_B).unsqueeze(1)
    return curve_B2 + _BLUR * noise_B2


def prior_sample(prior: str, noise: dict[str, Tensor], components: int = COMPONENTS) -> Tensor:
    """Return a sample [B, Z] of the named prior from the noise in `PRIORS`.

    `components` is the number of Gaussians of the mixture, or of classes of the categorical prior.
    """
    drawn_BZ = noise["prior"]
    if prior == "normal":
        return drawn_BZ
    if prior == "uniform":
        return 2.0 * drawn_BZ - 1.0
    uniform_B = noise["place"][:, 0]
    if prior == "categorical":
        return torch.cat([one_hot_sample(uniform_B, components), drawn_BZ[:, components:]], 1)
    flat_B2 = drawn_BZ[:, :2]
    shape_B2 = gaussian_ring(uniform_B, flat_B2, components) if prior == "mixture" else swiss_roll(uniform_B, flat_B2)
    return torch.cat([shape_B2, drawn_BZ[:, 2:]], 1)


def one_hot_sample(uniform_B: Tensor, classes: int) -> Tensor:
    """Return one-hot vectors [B, Y] of equally likely classes, from uniform numbers [B] in [0, 1)."""
    chosen_B = (uniform_B * classes).floor()
    return (chosen_B[:, None] == torch.arange(classes, device=uniform_B.device)).to(uniform_B.dtype)
