"""An encoder without a decoder, for losses that compare points.

Shape letters: B batch, Z coordinates, C channels, H height, W width.
"""

import torch.nn.functional as F
from torch import Tensor, nn

from unweave.contract import Representation
from unweave.nn.networks import build_networks, init_weights
from unweave.nn.precision import at_least_float32


class Embedding(nn.Module):
    """The encoder of the named network with one output per latent; with `sphere`, scaled to length 1."""

    def __init__(
        self, shape: tuple[int, int, int], latents: int, net: str, *, sphere: bool = False, bias: bool = True
    ) -> None:
        super().__init__()
        self.latents, self.sphere = latents, sphere
        *body, last = build_networks(net, shape, latents)[0].children()
        head = nn.Linear(last.in_features, latents, bias=bias)  # type: ignore[arg-type]
        init_weights(head)
        self.encoder = nn.Sequential(*body, head)

    def forward(self, x_BCHW: Tensor) -> Tensor:
        z_BZ = at_least_float32(self.encoder(x_BCHW))
        return F.normalize(z_BZ, dim=1) if self.sphere else z_BZ

    def representation(self) -> Representation:
        return Representation(self, self.latents)
