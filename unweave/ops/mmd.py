"""Maximum mean discrepancy between two samples (Gretton et al. 2012).

Shape letters: M, N sizes of the two samples, Z latents.
"""

from collections.abc import Callable

import torch
from torch import Tensor

SCALES = (0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0)  # of the averaged inverse multiquadratic kernels


def square_distances(x_MZ: Tensor, y_NZ: Tensor) -> Tensor:
    """Return |x_i - y_j|^2 [M, N], from differences, which are precise for close codes."""
    return (x_MZ.unsqueeze(1) - y_NZ.unsqueeze(0)).square().sum(2)


def rbf(square: Tensor, latents: int) -> Tensor:
    """Return exp(-d^2 / Z^2), with the bandwidth of the InfoVAE authors: 2 sigma^2 = Z^2."""
    return (-square / latents**2).exp()


def inverse_multiquadratic(square: Tensor, latents: int) -> Tensor:
    """Return the mean over scales s of C / (C + d^2), C = 2 Z s; 2 Z is the mean d^2 of two standard normal codes."""
    values = [(2.0 * latents * scale) / (2.0 * latents * scale + square) for scale in SCALES]
    return torch.stack(values).mean(0)


KERNELS: dict[str, Callable[[Tensor, int], Tensor]] = {"imq": inverse_multiquadratic, "rbf": rbf}


def unbiased_mmd(x_MZ: Tensor, y_NZ: Tensor, kernel: Callable[[Tensor, int], Tensor]) -> Tensor:
    """Return MMD^2 without pairs of a code with itself: its mean is zero for equal distributions."""
    latents = x_MZ.shape[1]

    def within(z_NZ: Tensor) -> Tensor:
        values_NN, count = kernel(square_distances(z_NZ, z_NZ), latents), z_NZ.shape[0]
        return (values_NN.sum() - values_NN.diagonal().sum()) / (count * (count - 1))

    return within(x_MZ) + within(y_NZ) - 2.0 * kernel(square_distances(x_MZ, y_NZ), latents).mean()
