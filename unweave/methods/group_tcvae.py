"""group-tcVAE: content and style separated by their total correlation, from pairs that share one of them."""

from typing import Annotated, Any, NamedTuple, final

import torch
from torch import Tensor

from unweave.contract import Batch, DataInfo, HyperParam, Method, Out, Representation, Setting, normal, uniform
from unweave.nn.autoencoder import AutoEncoder
from unweave.nn.discriminator import Discriminator, log_ratio
from unweave.nn.grouped import content_and_style, content_size
from unweave.nn.settings import Content, Latents, LikelihoodName, Net, Width
from unweave.ops.density_ratio import discriminator_loss
from unweave.ops.permutation import level_blocks, permute_blocks
from unweave.ops.sharing import pair_divergence


@final
class GroupTCVAE(Method):
    """Tran et al. 2021, eq. 3, with the sign of its last term corrected: it makes shared posteriors equal."""

    class Hyper(NamedTuple):
        beta: Annotated[Tensor, HyperParam(10.0, "weight of the total correlation", paper="10, 20, 30, 40, 50, 100")]
        gamma: Annotated[
            Tensor, HyperParam(8.0, "weight of the KL between shared posteriors", paper="1, 8, 16, 32, 64")
        ]

    paper = "Tran et al., Weakly-Supervised Group Disentanglement Using Total Correlation, 2021"
    equation = (
        "1/2 sum_(i=1,2) ( -E_q(z|x_i)[log p(x_i|z)] + KL(q(z|x_i) || p(z)) + beta KL(q(z) || q_level(z)) "
        "+ gamma KL(q(z_g|x_i) || q(z_g|x_j)) ), g what the pair shares, j the other"
    )
    needs = ("x", "pair", "shared")
    example_supervision = "match(content=['shape'])"
    players = {"model": ("autoencoder",), "discriminator": ("discriminator",)}
    noise = {"eps": normal("B", "Z"), "eps_pair": normal("B", "Z"), "perm": uniform("B")}
    optimizer_defaults = {"model": {"lr": 1e-4}, "discriminator": {"lr": 1e-4, "betas": (0.5, 0.9)}}

    def __init__(
        self,
        data: DataInfo,
        *,
        latents: Latents = 10,
        net: Net = "locatello",
        likelihood: LikelihoodName = "bernoulli",
        content: Content = 0,
        level: Annotated[str, Setting("what is independent: inter, inter_intra_one or inter_intra_all")] = "inter",
        discriminator_width: Width = 1000,
    ) -> None:
        super().__init__()
        self.latents = latents
        self.content = content_size(content, latents)  # the first latents; the others are style
        level_blocks(level, self.content, latents)  # raises if the level is unknown
        self.level = level
        self.autoencoder = AutoEncoder(data.shape, latents, net, likelihood)
        self.discriminator = Discriminator(latents, width=discriminator_width)

    def forward(self, batch: Batch, noise: Any, hyper: Hyper, step: Tensor) -> Out:
        images = torch.cat([batch.x, batch.pair])
        p = self.autoencoder(images, torch.cat([noise["eps"], noise["eps_pair"]]))
        recon, kl_Z = p.nll_B.mean(), p.kl_BZ.mean(0)
        content_kl, style_kl = kl_Z[: self.content].sum(), kl_Z[self.content :].sum()
        tc = log_ratio(self.discriminator, p.z_BZ).mean()
        shared_kl = self._shared_kl(p.mean_BZ, p.logvar_BZ, batch.shared)
        kl = content_kl + style_kl
        loss = recon + kl + hyper.beta * tc + hyper.gamma * shared_kl
        discriminator, accuracy = self._discriminator_loss(p.z_BZ.detach(), noise["perm"])
        logs = {"loss": loss, "recon": recon, "kl": kl, "content_kl": content_kl, "style_kl": style_kl, "tc": tc}
        logs |= {"shared_kl": shared_kl, "discriminator": discriminator, "discriminator_accuracy": accuracy}
        return Out({"model": loss, "discriminator": discriminator}, logs)

    def _shared_kl(self, mean_2BZ: Tensor, logvar_2BZ: Tensor, shared_B: Tensor) -> Tensor:
        """Return the KL between the posteriors of a pair in the shared part, in both directions, averaged."""
        first, other = zip(mean_2BZ.chunk(2), logvar_2BZ.chunk(2), strict=True)
        divergence_BZ = pair_divergence(first, other, symmetric=True)
        part_Z = (torch.arange(self.latents, device=shared_B.device) >= self.content).long()  # 0 content, 1 style
        is_shared_BZ = part_Z == shared_B.unsqueeze(1)
        return torch.where(is_shared_BZ, divergence_BZ, 0.0).sum(1).mean()

    def _discriminator_loss(self, z_2BZ: Tensor, keys_B: Tensor) -> tuple[Tensor, Tensor]:
        """Return the cross-entropy of codes against samples of the factorisation, and the accuracy."""
        # Each half is permuted separately: the codes of a pair are not independent.
        product_2BZ = torch.cat([permute_blocks(z_BZ, keys_B, self.level, self.content) for z_BZ in z_2BZ.chunk(2)])
        return discriminator_loss(*log_ratio(self.discriminator, torch.cat([z_2BZ, product_2BZ])).chunk(2))

    def representation(self) -> Representation:
        parts = content_and_style(self.content, self.latents)
        return self.autoencoder.representation()._replace(parts=parts)
