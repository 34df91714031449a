"""An autoencoder of pairs: posteriors are merged in the latents that a pair seems to share (Locatello et al. 2020).

Shape letters: B pairs, Z latents, C channels, H height, W width. 2B is all first images, then their partners.
"""

from collections.abc import Callable, Mapping
from typing import NamedTuple

import torch
from torch import Tensor

from unweave.contract import Batch
from unweave.nn.autoencoder import AutoEncoder
from unweave.ops.divergence import kl_standard, reparametrize
from unweave.ops.sharing import Gaussian, pair_divergence, shared_by_count, shared_by_threshold

Merge = Callable[[Gaussian, Gaussian, Tensor], tuple[Gaussian, ...]]


class PairPass(NamedTuple):
    """One pass of pairs through the autoencoder, unreduced."""

    nll_2B: Tensor  # -log p(x|z) in nats, summed over pixels
    kl_2BZ: Tensor  # of the merged posteriors to N(0, 1)
    shared_BZ: Tensor  # True where the posteriors were merged


def pair_pass(
    autoencoder: AutoEncoder,
    batch: Batch,
    noise: Mapping[str, Tensor],
    merge: Merge,
    *,
    changed_B: Tensor | None,
    symmetric: bool,
) -> PairPass:
    """Encode, estimate the shared latents (with the number of changes if given), merge, sample, decode and score."""
    images_2BCHW, eps_2BZ = torch.cat([batch.x, batch.pair]), torch.cat([noise["eps"], noise["eps_pair"]])
    mean, logvar = autoencoder.posterior(images_2BCHW)
    first, other = zip(mean.chunk(2), logvar.chunk(2), strict=True)
    divergence_BZ = pair_divergence(first, other, symmetric=symmetric).detach()
    shared_BZ = shared_by_threshold(divergence_BZ) if changed_B is None else shared_by_count(divergence_BZ, changed_B)
    mean, logvar = (torch.cat(part) for part in zip(*merge(first, other, shared_BZ), strict=True))
    nll_2B = autoencoder.nll(images_2BCHW, reparametrize(mean, logvar, eps_2BZ))
    return PairPass(nll_2B, kl_standard(mean, logvar), shared_BZ)


def pair_loss(p: PairPass, beta: Tensor) -> tuple[Tensor, dict[str, Tensor]]:
    """Return the loss per image and the logged quantities."""
    recon, kl = p.nll_2B.mean(), p.kl_2BZ.sum(1).mean()
    loss = recon + beta * kl
    return loss, {"loss": loss, "recon": recon, "kl": kl, "shared": p.shared_BZ.float().sum(1).mean()}
