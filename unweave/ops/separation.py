"""Repulsion of points. Shape letters: Y points, Z coordinates."""

from torch import Tensor


def repulsion(points_YZ: Tensor, eta: Tensor) -> Tensor:
    """Return the sum of max(0, eta - distance) over all pairs of points."""
    gap_YYZ = points_YZ.unsqueeze(0) - points_YZ.unsqueeze(1)
    distance_YY = (gap_YYZ.square().sum(2) + 1e-12).sqrt()  # for equal points the gradient is zero
    return (eta - distance_YY).clamp_min(0.0).triu(1).sum()
