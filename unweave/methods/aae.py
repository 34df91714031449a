"""AAE: an autoencoder with a discriminator that matches the codes with a prior."""

from typing import Annotated, Any, final

import torch
from torch import Tensor

from unweave.contract import Batch, DataInfo, Method, Out, Part, Representation, Setting, normal
from unweave.errors import check_choice, check_integer
from unweave.nn.autoencoder import AutoEncoder
from unweave.nn.batch_norm import BatchNormEncoder, State
from unweave.nn.discriminator import Discriminator, adversarial_losses
from unweave.nn.precision import at_least_float32
from unweave.nn.settings import BatchNormed, Depth, Latents, LikelihoodName, Net, Width
from unweave.ops.density_ratio import GENERATOR_LOSSES
from unweave.ops.divergence import reparametrize
from unweave.ops.priors import COMPONENTS, PRIORS, prior_sample


@final
class AAE(Method):
    """Makhzani et al. 2015, section 2 and figure 1: the two phases of a step."""

    paper = "Makhzani et al., Adversarial Autoencoders, 2015"
    equation = "-E_q(z|x)[log p(x|z)], then -E_q(z)[log D(z)], D(z) the discriminator's probability that z is from p(z)"
    players = {"model": ("autoencoder",), "discriminator": ("discriminator",), "encoder": ("autoencoder.encoder",)}
    phases = {"reconstruction": ("model",), "regularisation": ("discriminator", "encoder")}
    noise = PRIORS["normal"]
    objective = "recon"
    optimizer_defaults = {
        "model": {"lr": 1e-4, "sgd": {"lr": 0.01, "momentum": 0.9}},
        "discriminator": {"lr": 1e-4, "betas": (0.5, 0.9), "sgd": {"lr": 0.1, "momentum": 0.1}},
        "encoder": {"lr": 3e-5, "betas": (0.5, 0.9), "sgd": {"lr": 0.1, "momentum": 0.1}},  # experiments/aae_rates.py
    }

    def __init__(
        self,
        data: DataInfo,
        *,
        latents: Latents = 10,
        net: Net = "locatello",
        likelihood: LikelihoodName = "bernoulli",
        encoder: Annotated[str, Setting("deterministic or gaussian")] = "deterministic",
        prior: Annotated[
            str, Setting("normal, uniform, mixture, swiss_roll, or categorical (a class and a normal style)")
        ] = "normal",
        components: Annotated[
            int, Setting("number of Gaussians of the mixture, or of classes of categorical")
        ] = COMPONENTS,
        generator: Annotated[
            str, Setting("loss of the encoder against the discriminator: non_saturating, minimax or ratio")
        ] = "non_saturating",
        discriminator_steps: Annotated[
            int, Setting("number of updates of discriminator and encoder per reconstruction update")
        ] = 1,
        discriminator_width: Width = 1000,
        discriminator_depth: Depth = 2,
        batch_norm: BatchNormed = False,
    ) -> None:
        super().__init__()
        check_choice("encoder", encoder, ("deterministic", "gaussian"))
        check_choice("prior", prior, tuple(PRIORS))
        check_choice("generator", generator, tuple(GENERATOR_LOSSES))
        check_integer("components", components, 2, 10_000)
        check_integer("discriminator_steps", discriminator_steps, 1, 1000)
        smallest = components + 1 if prior == "categorical" else 2 if "place" in PRIORS[prior] else 1
        check_integer("latents", latents, smallest, context=f"prior '{prior}'")
        self.latents, self.components = latents, components
        self.gaussian, self.prior, self.generator = encoder == "gaussian", prior, generator
        self.noise = {**PRIORS[prior], "eps": normal("B", "Z")} if self.gaussian else PRIORS[prior]
        self.autoencoder = AutoEncoder(data.shape, latents, net, likelihood)
        if batch_norm:
            self.autoencoder.encoder = BatchNormEncoder(self.autoencoder.encoder)
        self.discriminator = Discriminator(latents, width=discriminator_width, depth=discriminator_depth)
        repeats = (f"regularisation_{n}" for n in range(2, discriminator_steps + 1))
        self.phases = {**self.phases, **dict.fromkeys(repeats, ("discriminator", "encoder"))}

    def forward(self, batch: Batch, noise: Any, hyper: Any, step: Tensor, phase: str = "reconstruction") -> Out:
        z_BZ, state = self._code(batch.x, noise)
        if phase == "reconstruction":
            recon = self.autoencoder.nll(batch.x, z_BZ).mean()
            return Out({"model": recon}, {"recon": recon}, state)
        prior_BZ = prior_sample(self.prior, noise, self.components)
        losses = adversarial_losses(self.discriminator, z_BZ, prior_BZ, self.generator)
        logs = {"generator": losses.generator, "discriminator": losses.discriminator}
        logs["discriminator_accuracy"] = losses.accuracy
        return Out({"discriminator": losses.discriminator, "encoder": losses.generator}, logs)

    def _code(self, x_BCHW: Tensor, noise: Any) -> tuple[Tensor, State]:
        """Return the codes of a training batch, and the new running averages of an encoder with batch normalisation."""
        state: State = {}
        encoder = self.autoencoder.encoder
        if isinstance(encoder, BatchNormEncoder):
            outputs, state = encoder.batch(x_BCHW, "autoencoder.encoder")
            mean_BZ, logvar_BZ = at_least_float32(outputs).chunk(2, dim=1)
        else:
            mean_BZ, logvar_BZ = self.autoencoder.posterior(x_BCHW)
        return self._with_classes(reparametrize(mean_BZ, logvar_BZ, noise["eps"]) if self.gaussian else mean_BZ), state

    def _with_classes(self, z_BZ: Tensor) -> Tensor:
        """With a categorical prior, turn the first coordinates of a code into class probabilities."""
        if self.prior != "categorical":
            return z_BZ
        return torch.cat([z_BZ[:, : self.components].softmax(1), z_BZ[:, self.components :]], 1)

    def representation(self) -> Representation:
        found = self.autoencoder.representation()
        if self.prior == "categorical":
            parts = (Part("class", self.components, classes=True), Part("style", self.latents - self.components))
            encode = found.require("encode")
            return found._replace(encode=lambda x: self._with_classes(encode(x)), posterior=None, parts=parts)
        # The second half of a deterministic encoder is not trained: its variances are not those of a posterior.
        return found if self.gaussian else found._replace(posterior=None)
