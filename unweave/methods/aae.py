"""AAE: an autoencoder whose codes a critic holds to a prior."""

from __future__ import annotations

from typing import Any, final

from torch import Tensor

from unweave.contract import Batch, DataInfo, Method, Out, Representation, UserError, check_choice, normal
from unweave.nn.autoencoder import AutoEncoder
from unweave.nn.critic import Critic, contest
from unweave.ops.density_ratio import GENERATORS
from unweave.ops.divergence import reparametrize
from unweave.ops.priors import PRIORS, prior_sample

ENCODERS = ("deterministic", "gaussian")


@final
class AAE(Method):
    """Makhzani et al. 2015, section 2 and figure 1: the two phases of a step."""

    paper = "Makhzani et al., Adversarial Autoencoders, 2015"
    equation = "-E_q(z|x)[log p(x|z)], then -E_q(z)[log D(z)], D(z) the critic's chance that z is from p(z)"
    players = {"model": ("autoencoder",), "critic": ("critic",), "encoder": ("autoencoder.encoder",)}
    phases = {"reconstruction": ("model",), "regularisation": ("critic", "encoder")}
    noise = PRIORS["normal"]
    recipe = {
        "model": {"lr": 1e-4},
        "critic": {"lr": 1e-4, "betas": (0.5, 0.9)},
        "encoder": {"lr": 3e-5, "betas": (0.5, 0.9)},  # benchmarks/aae_rates.py
    }

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
        check_choice("encoder", encoder, ENCODERS)
        check_choice("prior", prior, tuple(PRIORS))
        check_choice("generator", generator, tuple(GENERATORS))
        if "place" in PRIORS[prior] and latents < 2:
            raise UserError(f"latents {latents} is too small for prior '{prior}'; use 2 or more")
        self.latents = latents
        self.gaussian, self.prior, self.generator = encoder == "gaussian", prior, generator
        self.noise = {**PRIORS[prior], "eps": normal("B", "Z")} if self.gaussian else PRIORS[prior]
        self.autoencoder = AutoEncoder(data.shape, latents, net, likelihood)
        self.critic = Critic(latents, depth=2)

    def forward(self, batch: Batch, noise: Any, hyper: Any, step: Tensor, phase: str = "reconstruction") -> Out:
        z_BZ = self._code(batch.x, noise)  # type: ignore[arg-type]
        if phase == "reconstruction":
            recon = self.autoencoder.nll(batch.x, z_BZ).mean()  # type: ignore[arg-type]
            return Out({"model": recon}, {"recon": recon})
        game = contest(self.critic, z_BZ, prior_sample(self.prior, noise), self.generator)
        logs = {"generator": game.generator, "critic": game.critic, "critic_accuracy": game.accuracy}
        return Out({"critic": game.critic, "encoder": game.generator}, logs)

    def _code(self, x_BCHW: Tensor, noise: Any) -> Tensor:
        mean_BZ, logvar_BZ = self.autoencoder.posterior(x_BCHW)
        return reparametrize(mean_BZ, logvar_BZ, noise["eps"]) if self.gaussian else mean_BZ

    def representation(self) -> Representation:
        found = self.autoencoder.representation()
        # A deterministic encoder's second half is never trained: its variances must not be taken for a posterior.
        return found if self.gaussian else found._replace(posterior=None)
