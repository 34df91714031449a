"""AAE: an autoencoder whose codes a critic holds to a prior."""

from __future__ import annotations

from typing import Annotated, Any, NamedTuple, final

import torch
from torch import Tensor

from unweave.contract import Batch, DataInfo, Knob, Method, Out, Representation, UserError, normal
from unweave.nn.autoencoder import AutoEncoder
from unweave.nn.critic import Critic
from unweave.ops.density_ratio import GENERATORS, critic_loss
from unweave.ops.divergence import reparametrize
from unweave.ops.priors import PRIORS, prior_sample

ENCODERS = ("deterministic", "gaussian")


@final
class AAE(Method):
    """Makhzani et al. 2015, section 2. The two phases' moves of the encoder are one, by the sum of their losses."""

    class Hyper(NamedTuple):
        lambda_: Annotated[Tensor, Knob(1.0, "weight of the generator's loss beside the reconstruction")]

    paper = "Makhzani et al., Adversarial Autoencoders, 2015"
    equation = "-E_q(z|x)[log p(x|z)] - lambda E_q(z)[log D(z)], D(z) the critic's chance that z is from p(z)"
    players = {"model": ("autoencoder",), "critic": ("critic",)}
    noise = PRIORS["normal"]
    recipe = {"model": {"lr": 1e-4}, "critic": {"lr": 1e-4, "betas": (0.5, 0.9)}}

    def __init__(
        self,
        data: DataInfo,
        *,
        latents: int = 10,
        net: str = "locatello",
        likelihood: str = "bernoulli",
        encoder: str = "deterministic",
        prior: str = "normal",
        generator: str = "non_saturating",
    ) -> None:
        super().__init__()
        _check("encoder", encoder, ENCODERS)
        _check("prior", prior, tuple(PRIORS))
        _check("generator", generator, tuple(GENERATORS))
        if "place" in PRIORS[prior] and latents < 2:
            raise UserError(f"latents {latents} is too small for prior '{prior}'; use 2 or more")
        self.latents = latents
        self.gaussian, self.prior, self.generator = encoder == "gaussian", prior, generator
        self.noise = {**PRIORS[prior], "eps": normal("B", "Z")} if self.gaussian else PRIORS[prior]
        self.autoencoder = AutoEncoder(data.shape, latents, net, likelihood)
        self.critic = Critic(latents, depth=2)

    def forward(self, batch: Batch, noise: Any, hyper: Hyper, step: Tensor) -> Out:
        mean_BZ, logvar_BZ = self.autoencoder.posterior(batch.x)  # type: ignore[arg-type]
        z_BZ = reparametrize(mean_BZ, logvar_BZ, noise["eps"]) if self.gaussian else mean_BZ
        recon = self.autoencoder.nll(batch.x, z_BZ).mean()  # type: ignore[arg-type]
        generator = GENERATORS[self.generator](self._log_ratio(z_BZ)).mean()
        loss = recon + hyper.lambda_ * generator
        code_B, prior_B = self._log_ratio(torch.cat([z_BZ.detach(), prior_sample(self.prior, noise)])).chunk(2)
        critic, accuracy = critic_loss(code_B, prior_B)
        logs = {"loss": loss, "recon": recon, "generator": generator, "critic": critic, "critic_accuracy": accuracy}
        return Out({"model": loss, "critic": critic}, logs)

    def _log_ratio(self, z_BZ: Tensor) -> Tensor:
        """The critic's log q(z) / p(z) [B]."""
        logits_B2 = self.critic(z_BZ)
        return logits_B2[:, 0] - logits_B2[:, 1]

    def representation(self) -> Representation:
        found = self.autoencoder.representation()
        # A deterministic encoder's second half is never trained: its variances must not be taken for a posterior.
        return found if self.gaussian else found._replace(posterior=None)


def _check(name: str, value: str, accepted: tuple[str, ...]) -> None:
    if value not in accepted:
        raise UserError(f"{name} '{value}' is unknown; use one of {', '.join(accepted)}")
