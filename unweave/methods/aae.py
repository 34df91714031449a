"""AAE: an autoencoder whose codes a critic holds to a prior."""

from __future__ import annotations

from typing import Any, final

import torch
from torch import Tensor

from unweave.contract import Batch, DataInfo, Method, Out, Part, Representation, normal
from unweave.errors import UserError, check_choice
from unweave.nn.autoencoder import AutoEncoder
from unweave.nn.batch_norm import BatchNormEncoder, State
from unweave.nn.discriminator import Discriminator, adversarial_losses
from unweave.nn.precision import at_least_single
from unweave.ops.density_ratio import GENERATOR_LOSSES
from unweave.ops.divergence import reparametrize
from unweave.ops.priors import PETALS, PRIORS, prior_sample

ENCODERS = ("deterministic", "gaussian")


@final
class AAE(Method):
    """Makhzani et al. 2015, section 2 and figure 1: the two phases of a step."""

    paper = "Makhzani et al., Adversarial Autoencoders, 2015"
    equation = "-E_q(z|x)[log p(x|z)], then -E_q(z)[log D(z)], D(z) the critic's chance that z is from p(z)"
    players = {"model": ("autoencoder",), "discriminator": ("discriminator",), "encoder": ("autoencoder.encoder",)}
    phases = {"reconstruction": ("model",), "regularisation": ("discriminator", "encoder")}
    noise = PRIORS["normal"]
    optimizer_defaults = {
        "model": {"lr": 1e-4, "sgd": {"lr": 0.01, "momentum": 0.9}},
        "discriminator": {"lr": 1e-4, "betas": (0.5, 0.9), "sgd": {"lr": 0.1, "momentum": 0.1}},
        "encoder": {"lr": 3e-5, "betas": (0.5, 0.9), "sgd": {"lr": 0.1, "momentum": 0.1}},  # experiments/aae_rates.py
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
        components: int = PETALS,
        generator: str = "non_saturating",
        discriminator_steps: int = 1,
        discriminator_width: int = 1000,
        discriminator_depth: int = 2,
        batch_norm: bool = False,
    ) -> None:
        super().__init__()
        check_choice("encoder", encoder, ENCODERS)
        check_choice("prior", prior, tuple(PRIORS))
        check_choice("generator", generator, tuple(GENERATOR_LOSSES))
        if components < 2:
            raise UserError(f"components {components} is too small; use 2 or more")
        if discriminator_steps < 1:
            raise UserError(f"contests {discriminator_steps} is too small; use 1 or more")
        least = components + 1 if prior == "categorical" else 2 if "place" in PRIORS[prior] else 1
        if latents < least:
            raise UserError(f"latents {latents} is too small for prior '{prior}'; use {least} or more")
        self.latents, self.components = latents, components
        self.gaussian, self.prior, self.generator = encoder == "gaussian", prior, generator
        self.noise = {**PRIORS[prior], "eps": normal("B", "Z")} if self.gaussian else PRIORS[prior]
        self.autoencoder = AutoEncoder(data.shape, latents, net, likelihood)
        if batch_norm:
            self.autoencoder.encoder = BatchNormEncoder(self.autoencoder.encoder)
        self.discriminator = Discriminator(latents, width=discriminator_width, depth=discriminator_depth)
        again = (f"regularisation_{n}" for n in range(2, discriminator_steps + 1))
        self.phases = {**self.phases, **dict.fromkeys(again, ("discriminator", "encoder"))}

    def forward(self, batch: Batch, noise: Any, hyper: Any, step: Tensor, phase: str = "reconstruction") -> Out:
        z_BZ, state = self._code(batch.x, noise)  # type: ignore[arg-type]
        if phase == "reconstruction":
            recon = self.autoencoder.nll(batch.x, z_BZ).mean()  # type: ignore[arg-type]
            return Out({"model": recon}, {"recon": recon}, state)
        game = adversarial_losses(
            self.discriminator, z_BZ, prior_sample(self.prior, noise, self.components), self.generator
        )
        logs = {
            "generator": game.generator,
            "discriminator": game.discriminator,
            "discriminator_accuracy": game.accuracy,
        }
        return Out({"discriminator": game.discriminator, "encoder": game.generator}, logs)

    def _code(self, x_BCHW: Tensor, noise: Any) -> tuple[Tensor, State]:
        """Codes of a batch to learn from, and the new running averages of an encoder that is normalised."""
        mean_BZ, logvar_BZ, state = self._posterior(x_BCHW)
        return self._classed(reparametrize(mean_BZ, logvar_BZ, noise["eps"]) if self.gaussian else mean_BZ), state

    def _posterior(self, x_BCHW: Tensor) -> tuple[Tensor, Tensor, State]:
        encoder = self.autoencoder.encoder
        if not isinstance(encoder, BatchNormEncoder):
            return *self.autoencoder.posterior(x_BCHW), {}
        outputs, state = encoder.batch(x_BCHW, "autoencoder.encoder")
        mean_BZ, logvar_BZ = at_least_single(outputs).chunk(2, dim=1)
        return mean_BZ, logvar_BZ, state

    def _classed(self, z_BZ: Tensor) -> Tensor:
        """With a categorical prior the first coordinates of a code are the probabilities of classes."""
        if self.prior != "categorical":
            return z_BZ
        return torch.cat([z_BZ[:, : self.components].softmax(1), z_BZ[:, self.components :]], 1)

    def representation(self) -> Representation:
        found = self.autoencoder.representation()
        if self.prior == "categorical":
            parts = (Part("class", self.components, classes=True), Part("style", self.latents - self.components))
            encode = found.require("encode")
            return found._replace(encode=lambda x: self._classed(encode(x)), posterior=None, parts=parts)
        # A deterministic encoder's second half is never trained: its variances must not be taken for a posterior.
        return found if self.gaussian else found._replace(posterior=None)
