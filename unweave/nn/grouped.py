"""An autoencoder of groups: the first latents are the content that all members share, the others their styles.

Shape letters: B groups, G members, Z latents, N latents of the content, C channels, H height, W width.
"""

from typing import NamedTuple

import torch
from torch import Tensor

from unweave.contract import Part
from unweave.errors import check_integer, invalid
from unweave.nn.autoencoder import AutoEncoder
from unweave.ops.divergence import kl_standard, reparametrize
from unweave.ops.sharing import Aggregate, Gaussian


class GroupPass(NamedTuple):
    """One pass of groups through the autoencoder, unreduced."""

    nll_BG: Tensor  # -log p(x|content, style) in nats, summed over pixels
    content_kl_B: Tensor  # KL of the group's posterior to N(0, 1), summed over the content
    style_kl_BG: Tensor  # KL of each member's posterior, summed over the style


def content_size(content: int, latents: int) -> int:
    """Return the number of latents that are content; 0 is half of them."""
    check_integer("latents", latents, 2, context="content and style")
    return check_integer("content", content, 0, latents - 1, context=f"{latents} latents") or latents // 2


def group_posterior(autoencoder: AutoEncoder, images_BGCHW: Tensor, content: int, aggregate: Aggregate) -> Gaussian:
    """Return mean and log-variance [B, G, Z] of each member; all members of a group have equal content."""
    own = autoencoder.posterior(images_BGCHW.flatten(0, 1))
    mean_BGZ, logvar_BGZ = (part.unflatten(0, images_BGCHW.shape[:2]) for part in own)
    group = aggregate(mean_BGZ[..., :content], logvar_BGZ[..., :content], 1)
    mean_BGN, logvar_BGN = (part_BN.unsqueeze(1).expand(-1, mean_BGZ.shape[1], -1) for part_BN in group)
    mean_BGZ = torch.cat([mean_BGN, mean_BGZ[..., content:]], 2)
    return mean_BGZ, torch.cat([logvar_BGN, logvar_BGZ[..., content:]], 2)


def group_pass(
    autoencoder: AutoEncoder, images_BGCHW: Tensor, eps_BGZ: Tensor, content: int, aggregate: Aggregate
) -> GroupPass:
    """Encode, aggregate, sample content and style of every member, decode and score."""
    mean_BGZ, logvar_BGZ = group_posterior(autoencoder, images_BGCHW, content, aggregate)
    z_BGZ = reparametrize(mean_BGZ, logvar_BGZ, eps_BGZ)
    nll = autoencoder.nll(images_BGCHW.flatten(0, 1), z_BGZ.flatten(0, 1))
    kl_BGZ = kl_standard(mean_BGZ, logvar_BGZ)
    return GroupPass(
        nll.unflatten(0, images_BGCHW.shape[:2]),
        kl_BGZ[:, 0, :content].sum(1),  # equal for all members
        kl_BGZ[..., content:].sum(2),
    )


def group_loss(p: GroupPass, beta: Tensor, *, per_member: bool) -> tuple[Tensor, dict[str, Tensor]]:
    """Return the loss per member and the logged quantities; the content counts once per group or once per member."""
    recon, content_kl, style_kl = p.nll_BG.mean(), p.content_kl_B.mean(), p.style_kl_BG.mean()
    weight = 1.0 if per_member else 1.0 / p.nll_BG.shape[1]
    kl = style_kl + weight * content_kl
    loss = recon + beta * kl
    return loss, {"loss": loss, "recon": recon, "kl": kl, "content_kl": content_kl, "style_kl": style_kl}


def content_and_style(content: int, latents: int) -> tuple[Part, Part]:
    """Return the parts of a code."""
    return Part("content", content), Part("style", latents - content)


@torch.no_grad()
def encode_group(autoencoder: AutoEncoder, images: Tensor, content: int, aggregate: Aggregate) -> Tensor:
    """Return the codes [..., G, Z] of one group [G, C, H, W] or of B groups of equal size [B, G, C, H, W]."""
    if images.ndim not in (4, 5) or images.shape[-4] < 1:
        raise invalid("images", list(images.shape), "of shape [G, C, H, W] or [B, G, C, H, W]")
    if images.ndim == 4:
        return group_posterior(autoencoder, images.unsqueeze(0), content, aggregate)[0][0]
    return group_posterior(autoencoder, images, content, aggregate)[0]
