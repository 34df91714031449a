"""A kernel machine: scores that are linear in features of a Gaussian kernel at given centres.

Shape letters: B batch, Y classes, Z latents, F centres, which is also the number of features.
"""

import torch
from torch import Tensor, nn

_RIDGE = 1e-3  # added to the diagonal of the kernel matrix, so that nearly equal centres do not amplify noise


class KernelMachine(nn.Module):
    """Class scores. The inner product of the features of two codes is about exp(-|z - z'|^2 / (2 width^2)).

    Features are the kernel's values at the centres, whitened (Nystroem approximation, Williams and Seeger 2001). The
    centres should be distributed like the codes.
    """

    def __init__(self, centres_FZ: Tensor, classes: int, *, width: float) -> None:
        super().__init__()
        self.width = width
        self.centres_FZ = nn.Buffer(centres_FZ)
        kernel_FF = self.kernel(centres_FZ.double()) + _RIDGE * torch.eye(len(centres_FZ), dtype=torch.float64)
        lower_FF = torch.linalg.cholesky(kernel_FF)
        unit_FF = torch.eye(len(centres_FZ), dtype=torch.float64)
        whitening_FF = torch.linalg.solve_triangular(lower_FF, unit_FF, upper=False).T
        self.whitening_FF = nn.Buffer(whitening_FF.to(centres_FZ.dtype).contiguous())
        self.scores = nn.Linear(len(centres_FZ), classes)
        nn.init.zeros_(self.scores.weight)
        nn.init.zeros_(self.scores.bias)

    def kernel(self, z_BZ: Tensor) -> Tensor:
        """Return the kernel of each code and each centre [B, F]."""
        centres_FZ = self.centres_FZ.to(z_BZ.dtype)
        square_BF = z_BZ.square().sum(1)[:, None] + centres_FZ.square().sum(1) - 2.0 * z_BZ @ centres_FZ.T
        return (-square_BF.clamp_min(0.0) / (2.0 * self.width**2)).exp()

    def features(self, z_BZ: Tensor) -> Tensor:
        """Return the features [B, F], of length about one near the centres."""
        with torch.autocast(z_BZ.device.type, enabled=False):  # bfloat16 is too imprecise for a difference of squares
            return self.kernel(z_BZ) @ self.whitening_FF

    def forward(self, z_BZ: Tensor) -> Tensor:
        return self.scores(self.features(z_BZ))
