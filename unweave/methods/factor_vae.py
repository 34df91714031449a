"""FactorVAE: total correlation by the density-ratio trick."""

from typing import Annotated, Any, NamedTuple, final

import torch
from torch import Tensor

from unweave.contract import Batch, DataInfo, HyperParam, Method, Out, Setting, normal, uniform
from unweave.nn.autoencoder import AutoEncoder
from unweave.nn.discriminator import Discriminator, log_ratio
from unweave.nn.settings import Depth, Latents, LikelihoodName, Net, Width
from unweave.ops.density_ratio import discriminator_loss
from unweave.ops.divergence import reparametrize
from unweave.ops.total_correlation import permute_latents


@final
class FactorVAE(Method):
    """Kim & Mnih 2018, eq. 2 and algorithm 2."""

    class Hyper(NamedTuple):
        gamma: Annotated[Tensor, HyperParam(35.0, "weight of the total correlation", paper="10, 20, 30, 40, 50, 100")]

    paper = "Kim and Mnih, Disentangling by Factorising, ICML 2018"
    equation = "-E_q(z|x)[log p(x|z)] + KL(q(z|x) || p(z)) + gamma KL(q(z) || prod_j q(z_j))"
    players = {"model": ("autoencoder",), "discriminator": ("discriminator",)}
    noise = {"eps": normal("B", "Z"), "eps_second": normal("B", "Z"), "perm": uniform("B", "Z")}
    optimizer_defaults = {"model": {"lr": 1e-4}, "discriminator": {"lr": 1e-4, "betas": (0.5, 0.9)}}

    def __init__(
        self,
        data: DataInfo,
        *,
        latents: Latents = 10,
        net: Net = "locatello",
        likelihood: LikelihoodName = "bernoulli",
        one_batch: Annotated[
            bool, Setting("permute the codes of the same batch instead of those of a second one")
        ] = False,
        discriminator_width: Width = 1000,
        discriminator_depth: Depth = 6,
    ) -> None:
        super().__init__()
        self.latents, self.one_batch = latents, one_batch
        self.needs = ("x",) if one_batch else ("x", "x_other")
        self.autoencoder = AutoEncoder(data.shape, latents, net, likelihood)
        self.discriminator = Discriminator(latents, width=discriminator_width, depth=discriminator_depth)

    def forward(self, batch: Batch, noise: Any, hyper: Hyper, step: Tensor) -> Out:
        p = self.autoencoder(batch.x, noise["eps"])
        recon, kl = p.nll_B.mean(), p.kl_BZ.sum(1).mean()
        tc = log_ratio(self.discriminator, p.z_BZ).mean()
        loss = recon + kl + hyper.gamma * tc
        z_BZ = p.z_BZ
        if not self.one_batch:
            mean_BZ, logvar_BZ = self.autoencoder.posterior(batch.x_other)
            z_BZ = reparametrize(mean_BZ, logvar_BZ, noise["eps_second"])
        codes_2BZ = torch.cat([p.z_BZ.detach(), permute_latents(z_BZ.detach(), noise["perm"])])
        discriminator, accuracy = discriminator_loss(*log_ratio(self.discriminator, codes_2BZ).chunk(2))
        logs = {"loss": loss, "recon": recon, "kl": kl, "tc": tc}
        logs |= {"discriminator": discriminator, "discriminator_accuracy": accuracy}
        return Out({"model": loss, "discriminator": discriminator}, logs)
