"""InfoVAE: the distribution of all codes is held to the prior, each code only as far as you like."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, NamedTuple, final

import torch
from torch import Tensor

from unweave.contract import Batch, DataInfo, HyperParam, Method, Out, normal
from unweave.errors import UserError, check_choice
from unweave.nn.autoencoder import AutoEncoder
from unweave.nn.discriminator import Discriminator
from unweave.ops.density_ratio import GENERATOR_LOSSES, discriminator_loss
from unweave.ops.mmd import KERNELS, unbiased_mmd
from unweave.ops.stein import stein_surrogate

DIVERGENCES = ("mmd", "stein", "adversarial")


@final
class InfoVAE(Method):
    """Zhao et al. 2019, the KL of the aggregate posterior replaced by one of three divergences."""

    class Hyper(NamedTuple):
        alpha: Annotated[
            Tensor, HyperParam(0.0, "weight of the information of codes about images", low=-1000.0, high=1.0)
        ]
        lambda_: Annotated[Tensor, HyperParam(100.0, "weight of the distance of q(z) to p(z); 1 to 10 unless mmd")]

    paper = "Zhao, Song and Ermon, InfoVAE: Balancing Learning and Inference in Variational Autoencoders, AAAI 2019"
    equation = "-E_q(z|x)[log p(x|z)] + (1 - alpha) KL(q(z|x) || p(z)) + (alpha + lambda - 1) D(q(z) || p(z))"
    players = {
        "model": ("autoencoder",),
        "discriminator": ("discriminator",),
    }  # the critic with divergence=adversarial only
    noise = {"eps": normal("B", "Z"), "prior": normal("B", "Z")}
    optimizer_defaults = {"model": {"lr": 1e-4}, "discriminator": {"lr": 1e-4, "betas": (0.5, 0.9)}}

    def __init__(
        self,
        data: DataInfo,
        *,
        latents: int = 10,
        net: str = "locatello",
        likelihood: str = "bernoulli",
        divergence: str = "mmd",
        kernel: str = "imq",
    ) -> None:
        super().__init__()
        check_choice("divergence", divergence, DIVERGENCES)
        check_choice("kernel", kernel, KERNELS)
        self.latents = latents
        self.divergence, self.kernel = divergence, kernel
        self.autoencoder = AutoEncoder(data.shape, latents, net, likelihood)
        if divergence == "adversarial":
            self.discriminator = Discriminator(latents, depth=2)
        else:
            self.players = {"model": ("autoencoder",)}

    @staticmethod
    def check_hyper(hyper: Mapping[str, float]) -> None:
        alpha, lambda_ = hyper.get("alpha", 1.0), hyper.get("lambda_", 1.0)
        if {"alpha", "lambda_"} <= hyper.keys() and alpha + lambda_ < 1.0 - 1e-9:
            raise UserError(
                f"alpha {alpha:g} and lambda_ {lambda_:g} push codes away from the prior; use an alpha + lambda_ of "
                "at least 1"
            )

    def forward(self, batch: Batch, noise: Any, hyper: Hyper, step: Tensor) -> Out:
        p = self.autoencoder(batch.x, noise["eps"])
        recon, kl = p.nll_B.mean(), p.kl_BZ.sum(1).mean()
        divergence = self._divergence(p.z_BZ, noise)
        loss = recon + (1.0 - hyper.alpha) * kl + (hyper.alpha + hyper.lambda_ - 1.0) * divergence
        out = Out({"model": loss}, {"loss": loss, "recon": recon, "kl": kl, self.divergence: divergence})
        if self.divergence == "adversarial":
            code_B, prior_B = self._log_ratio(torch.cat([p.z_BZ.detach(), noise["prior"]])).chunk(2)
            out.losses["discriminator"], out.logs["discriminator_accuracy"] = discriminator_loss(code_B, prior_B)
            out.logs["discriminator"] = out.losses["discriminator"]
        return out

    def _divergence(self, z_BZ: Tensor, noise: Any) -> Tensor:
        """The chosen estimate, from this batch, of how far the codes of all images are from the prior."""
        if self.divergence == "mmd":
            return unbiased_mmd(z_BZ, noise["prior"], KERNELS[self.kernel])
        if self.divergence == "stein":
            return stein_surrogate(z_BZ)
        return GENERATOR_LOSSES["ratio"](self._log_ratio(z_BZ)).mean()

    def _log_ratio(self, z_BZ: Tensor) -> Tensor:
        """The critic's log q(z) / p(z) [B]."""
        logits_B2 = self.discriminator(z_BZ)
        return logits_B2[:, 0] - logits_B2[:, 1]
