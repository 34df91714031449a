"""InfoVAE: separate weights for the divergence of q(z) and of q(z|x) from the prior."""

from collections.abc import Mapping
from typing import Annotated, Any, NamedTuple, final

import torch
from torch import Tensor

from unweave.contract import Batch, DataInfo, HyperParam, Method, Out, Setting, normal
from unweave.errors import check_choice, invalid
from unweave.nn.autoencoder import AutoEncoder
from unweave.nn.discriminator import Discriminator, log_ratio
from unweave.nn.settings import Latents, LikelihoodName, Net
from unweave.ops.density_ratio import GENERATOR_LOSSES, discriminator_loss
from unweave.ops.mmd import KERNELS, unbiased_mmd
from unweave.ops.stein import stein_surrogate

DIVERGENCES = ("mmd", "stein", "adversarial")


@final
class InfoVAE(Method):
    """Zhao et al. 2019, with one of three divergences of the aggregate posterior from the prior."""

    class Hyper(NamedTuple):
        alpha: Annotated[
            Tensor, HyperParam(0.0, "weight of the mutual information of codes and images", low=-1000.0, high=1.0)
        ]
        lambda_: Annotated[Tensor, HyperParam(100.0, "weight of the divergence of q(z) from p(z); 1 to 10 unless mmd")]

    paper = "Zhao, Song and Ermon, InfoVAE: Balancing Learning and Inference in Variational Autoencoders, AAAI 2019"
    equation = "-E_q(z|x)[log p(x|z)] + (1 - alpha) KL(q(z|x) || p(z)) + (alpha + lambda - 1) D(q(z) || p(z))"
    players = {"model": ("autoencoder",), "discriminator": ("discriminator",)}  # the second one only if adversarial
    noise = {"eps": normal("B", "Z"), "prior": normal("B", "Z")}
    optimizer_defaults = {"model": {"lr": 1e-4}, "discriminator": {"lr": 1e-4, "betas": (0.5, 0.9)}}

    def __init__(
        self,
        data: DataInfo,
        *,
        latents: Latents = 10,
        net: Net = "locatello",
        likelihood: LikelihoodName = "bernoulli",
        divergence: Annotated[str, Setting("divergence of q(z) from p(z): mmd, stein or adversarial")] = "mmd",
        kernel: Annotated[str, Setting("kernel of mmd: imq or rbf")] = "imq",
    ) -> None:
        super().__init__()
        check_choice("divergence", divergence, DIVERGENCES)
        check_choice("kernel", kernel, KERNELS)
        self.latents, self.divergence, self.kernel = latents, divergence, kernel
        self.autoencoder = AutoEncoder(data.shape, latents, net, likelihood)
        if divergence == "adversarial":
            self.discriminator = Discriminator(latents, depth=2)
        else:
            self.players = {"model": ("autoencoder",)}

    @staticmethod
    def check_hyper(hyper: Mapping[str, float]) -> None:
        alpha, lambda_ = hyper.get("alpha", 1.0), hyper.get("lambda_", 1.0)
        if {"alpha", "lambda_"} <= hyper.keys() and alpha + lambda_ < 1.0 - 1e-9:
            hint = "the weight of the divergence, alpha + lambda_ - 1, would be negative"
            raise invalid("lambda_", lambda_, f"at least {1.0 - alpha:g} with alpha={alpha:g}", hint=hint)

    def forward(self, batch: Batch, noise: Any, hyper: Hyper, step: Tensor) -> Out:
        p = self.autoencoder(batch.x, noise["eps"])
        recon, kl = p.nll_B.mean(), p.kl_BZ.sum(1).mean()
        divergence = self._divergence(p.z_BZ, noise)
        loss = recon + (1.0 - hyper.alpha) * kl + (hyper.alpha + hyper.lambda_ - 1.0) * divergence
        out = Out({"model": loss}, {"loss": loss, "recon": recon, "kl": kl, self.divergence: divergence})
        if self.divergence == "adversarial":
            code_B, prior_B = log_ratio(self.discriminator, torch.cat([p.z_BZ.detach(), noise["prior"]])).chunk(2)
            out.losses["discriminator"], out.logs["discriminator_accuracy"] = discriminator_loss(code_B, prior_B)
            out.logs["discriminator"] = out.losses["discriminator"]
        return out

    def _divergence(self, z_BZ: Tensor, noise: Any) -> Tensor:
        """Return the estimate from this batch of the divergence of q(z) from the prior."""
        if self.divergence == "mmd":
            return unbiased_mmd(z_BZ, noise["prior"], KERNELS[self.kernel])
        if self.divergence == "stein":
            return stein_surrogate(z_BZ)
        return GENERATOR_LOSSES["ratio"](log_ratio(self.discriminator, z_BZ)).mean()
