"""Points kept apart. Shape letters: Y points, Z coordinates."""

from __future__ import annotations

from torch import Tensor


def repulsion(points_YZ: Tensor, eta: Tensor) -> Tensor:
    """Over all pairs of points the sum of max(0, eta - distance): nothing at distance eta and beyond."""
    gap_YYZ = points_YZ.unsqueeze(0) - points_YZ.unsqueeze(1)
    distance_YY = (gap_YYZ.square().sum(2) + 1e-12).sqrt()  # two points in one place have a gradient, of zero
    return (eta - distance_YY).clamp_min(0.0).triu(1).sum()
