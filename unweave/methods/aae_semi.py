"""Semi-supervised AAE: a class and a style, matched with their priors by discriminators, and some labelled images."""

from typing import Annotated, Any, NamedTuple, final

from torch import Tensor

from unweave.contract import Batch, DataInfo, HyperParam, Method, Out, Part, Representation, normal
from unweave.errors import check_integer
from unweave.nn.autoencoder import AutoEncoder
from unweave.nn.batch_norm import BatchNormEncoder
from unweave.nn.conditional import class_count
from unweave.nn.discriminator import Discriminator
from unweave.nn.heads import (
    HEAD_NOISE,
    batch_heads,
    classification_loss,
    heads,
    heads_adversarial_losses,
)
from unweave.nn.settings import BatchNormed, LikelihoodName, Net, StyleLatents


@final
class AAESemi(Method):
    """Makhzani et al. 2015, section 5 and figure 6: the three phases of a step."""

    class Hyper(NamedTuple):
        sigma: Annotated[Tensor, HyperParam(0.3, "standard deviation of the noise on the encoder's input", paper="0.3")]

    paper = "Makhzani et al., Adversarial Autoencoders, 2015"
    equation = (
        "-E[log p(x|y,z)], then -E_q(z)[log D_z(z)] - E_q(y)[log D_y(y)], "
        "D the discriminators' probabilities of being from the prior, then -log q(y|x) of the labelled"
    )
    needs = ("x", "labelled", "labels")
    example_supervision = "labels(n=100, factors=['shape'])"
    objective = "recon"
    players = {
        "model": ("autoencoder",),
        "discriminators": ("style_discriminator", "class_discriminator"),
        "encoder": ("autoencoder.encoder",),
        "classifier": ("autoencoder.encoder",),
    }
    phases = {
        "reconstruction": ("model",),
        "regularisation": ("discriminators", "encoder"),
        "classification": ("classifier",),
    }
    optimizer_defaults = {
        "model": {"lr": 1e-4, "sgd": {"lr": 0.01, "momentum": 0.9}},
        "discriminators": {"lr": 1e-4, "betas": (0.5, 0.9), "sgd": {"lr": 0.1, "momentum": 0.1}},
        "encoder": {"lr": 1e-4, "betas": (0.5, 0.9), "sgd": {"lr": 0.1, "momentum": 0.1}},
        "classifier": {"lr": 1e-4, "sgd": {"lr": 0.1, "momentum": 0.9}},
    }

    def __init__(
        self,
        data: DataInfo,
        *,
        latents: StyleLatents = 10,
        net: Net = "locatello",
        likelihood: LikelihoodName = "bernoulli",
        batch_norm: BatchNormed = True,
    ) -> None:
        super().__init__()
        self.classes = class_count(data)
        self.latents = check_integer("latents", latents, 1)  # of the style
        self.noise = {**HEAD_NOISE, "input": normal("B", *data.shape)}
        self.autoencoder = AutoEncoder(data.shape, latents + self.classes, net, likelihood)
        self.autoencoder.encoder = BatchNormEncoder(self.autoencoder.encoder, hidden=batch_norm)
        self.style_discriminator = Discriminator(latents, depth=2)
        self.class_discriminator = Discriminator(self.classes, depth=2)

    def forward(self, batch: Batch, noise: Any, hyper: Hyper, step: Tensor, phase: str = "reconstruction") -> Out:
        x = batch.labelled if phase == "classification" else batch.x
        found, state = batch_heads(self.autoencoder, x + hyper.sigma * noise["input"], self.classes)  # type: ignore[operator]
        if phase == "reconstruction":
            recon = self.autoencoder.nll(batch.x, found.code).mean()
            return Out({"model": recon}, {"recon": recon}, state)
        if phase == "regularisation":
            return heads_adversarial_losses((self.style_discriminator, self.class_discriminator), found, noise)
        return classification_loss(found, batch.labels)

    def representation(self) -> Representation:
        return Representation(
            lambda x: heads(self.autoencoder, x, self.classes).code,
            self.latents + self.classes,
            self.autoencoder.decode,
            parts=(Part("style", self.latents), Part("class", self.classes, classes=True)),
            classify=lambda x: (heads(self.autoencoder, x, self.classes).class_BY,),
        )
