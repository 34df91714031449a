"""Samples of a factorised distribution of codes, put together from blocks of different codes of a batch.

The factorisations are those of Tran et al. 2021 for codes z = (z_c, z_s) of content and style:
inter               q(z_c) q(z_s)              content and style independent of each other
inter_intra_one     q(z_c) prod_j q(z_s,j)     the style's latents of one another too
inter_intra_all     prod_j q(z_j)              all latents

Shape letters: B batch, Z latents.
"""

from __future__ import annotations

import torch
from torch import Tensor

from unweave.errors import check_choice, invalid

LEVELS = ("inter", "inter_intra_one", "inter_intra_all")


def level_blocks(level: str, content: int, latents: int, device: torch.device | None = None) -> Tensor:
    """The number of the block of each latent [Z], from 0 without gaps; the first `content` latents are content."""
    check_choice("level", level, LEVELS)
    latent_Z = torch.arange(latents, device=device)
    if level == "inter_intra_all":
        return latent_Z
    own_Z = (latent_Z - content + 1).clamp(min=0)  # one block of content, then each latent of the style
    return own_Z.clamp(max=1) if level == "inter" else own_Z


def count_blocks(level: str, content: int, latents: int) -> int:
    """How many independent blocks the level makes of the code, and so how many codes a sample is made of."""
    return {"inter": 2, "inter_intra_one": 1 + latents - content, "inter_intra_all": latents}[level]


def permute_blocks(z_BZ: Tensor, keys_B: Tensor, level: str, content: int) -> Tensor:
    """Codes with every block from another code of the batch, in an order that the keys draw.

    Block k is the drawn order moved on by k places, so that no two blocks of a sample come from one code. Where the
    codes are independent a sample is then exactly of the product. Blocks permuted each on its own, as is usual, meet
    again with odds 1/B, and so often the sample is of the joint distribution instead.
    """
    batch, latents = z_BZ.shape
    block_Z = level_blocks(level, content, latents, z_BZ.device)
    if batch < (blocks := count_blocks(level, content, latents)):
        raise invalid("batch", batch, f"at least {blocks}, the number of blocks of level '{level}'")
    place_B = torch.arange(batch, device=z_BZ.device)
    source_BZ = (place_B.unsqueeze(1) + block_Z) % batch
    return z_BZ.gather(0, keys_B.argsort(0)[source_BZ])
