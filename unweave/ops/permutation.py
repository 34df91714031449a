"""Samples of a factorised distribution of codes, composed of blocks of different codes of a batch.

The factorisations are those of Tran et al. 2021 for codes z = (z_c, z_s) of content and style:
inter               q(z_c) q(z_s)              content and style independent of each other
inter_intra_one     q(z_c) prod_j q(z_s,j)     also the latents of the style
inter_intra_all     prod_j q(z_j)              all latents

Shape letters: B batch, Z latents.
"""

import torch
from torch import Tensor

from unweave.errors import check_choice, invalid

LEVELS = ("inter", "inter_intra_one", "inter_intra_all")


def level_blocks(level: str, content: int, latents: int, device: torch.device | None = None) -> Tensor:
    """Return the index of the block of each latent [Z]; the first `content` latents are content."""
    check_choice("level", level, LEVELS)
    latent_Z = torch.arange(latents, device=device)
    if level == "inter_intra_all":
        return latent_Z
    own_Z = (latent_Z - content + 1).clamp(min=0)  # one block of content, then each latent of the style
    return own_Z.clamp(max=1) if level == "inter" else own_Z


def permute_blocks(z_BZ: Tensor, keys_B: Tensor, level: str, content: int) -> Tensor:
    """Return codes with every block from a different code of the batch, in a random order given by the keys.

    Block k is the random order shifted by k, so that no two blocks of a sample come from the same code. If the codes
    are independent, a sample is exactly from the product. With independent permutations, as is usual, two blocks come
    from the same code with probability 1/B.
    """
    batch, latents = z_BZ.shape
    block_Z = level_blocks(level, content, latents, z_BZ.device)
    # Each block of a sample comes from a different code.
    blocks = {"inter": 2, "inter_intra_one": 1 + latents - content, "inter_intra_all": latents}[level]
    if batch < blocks:
        raise invalid("batch", batch, f"at least {blocks}, the number of blocks of level '{level}'")
    index_B = torch.arange(batch, device=z_BZ.device)
    source_BZ = (index_B.unsqueeze(1) + block_Z) % batch
    return z_BZ.gather(0, keys_B.argsort(0)[source_BZ])
