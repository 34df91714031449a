"""Clustering AAE: an unlabelled class and a style, matched with their priors by discriminators."""

from typing import Annotated, Any, NamedTuple, final

from torch import Tensor

from unweave.contract import Batch, DataInfo, HyperParam, Method, Out, Part, Representation, Setting, uniform
from unweave.errors import check_integer
from unweave.nn.autoencoder import AutoEncoder
from unweave.nn.batch_norm import BatchNormEncoder
from unweave.nn.discriminator import Discriminator
from unweave.nn.heads import HEAD_NOISE, batch_heads, heads, heads_adversarial_losses
from unweave.nn.settings import BatchNormed, LikelihoodName, Net, StyleLatents


@final
class AAECluster(Method):
    """Makhzani et al. 2015, section 6: the semi-supervised model without its third phase."""

    class Hyper(NamedTuple):
        dropout: Annotated[
            Tensor, HyperParam(0.2, "share of the encoder's input pixels set to 0", paper="0.2", high=0.9)
        ]
        class_weight: Annotated[
            Tensor, HyperParam(1.0, "weight of the encoder's loss against the class discriminator", "1")
        ]
        sharpness: Annotated[Tensor, HyperParam(1.0, "factor of the cluster logits", "1", high=1.0)]

    paper = "Makhzani et al., Adversarial Autoencoders, 2015"
    equation = (
        "-E[log p(x|y,z)], then -E_q(z)[log D_z(z)] - class_weight E_q(y)[log D_y(y)], "
        "D the discriminators' probabilities of being from the prior, y = softmax(sharpness logits)"
    )
    players = {
        "model": ("autoencoder",),
        "discriminators": ("style_discriminator", "class_discriminator"),
        "encoder": ("autoencoder.encoder",),
    }
    objective = "recon"
    phases = {"reconstruction": ("model",), "regularisation": ("discriminators", "encoder")}
    optimizer_defaults = {
        "model": {"lr": 1e-4, "sgd": {"lr": 0.01, "momentum": 0.9}},
        "discriminators": {"lr": 1e-4, "betas": (0.5, 0.9), "sgd": {"lr": 0.1, "momentum": 0.1}},
        "encoder": {"lr": 1e-4, "betas": (0.5, 0.9), "sgd": {"lr": 0.1, "momentum": 0.1}},
    }

    def __init__(
        self,
        data: DataInfo,
        *,
        latents: StyleLatents = 5,
        clusters: Annotated[int, Setting("number of clusters")] = 16,
        net: Net = "locatello",
        likelihood: LikelihoodName = "bernoulli",
        batch_norm: BatchNormed = True,
        style_batch_norm: Annotated[bool, Setting("normalise the style over the batch")] = False,
    ) -> None:
        super().__init__()
        self.latents = check_integer("latents", latents, 1)  # of the style
        self.clusters = check_integer("clusters", clusters, 2)
        self.noise = {**HEAD_NOISE, "input": uniform("B", *data.shape)}
        self.autoencoder = AutoEncoder(data.shape, latents + clusters, net, likelihood)
        self.autoencoder.encoder = BatchNormEncoder(
            self.autoencoder.encoder, hidden=batch_norm, classes=clusters, style=style_batch_norm
        )
        self.style_discriminator = Discriminator(latents, depth=2)
        self.class_discriminator = Discriminator(clusters, depth=2)

    def forward(self, batch: Batch, noise: Any, hyper: Hyper, step: Tensor, phase: str = "reconstruction") -> Out:
        keep = (noise["input"] >= hyper.dropout) / (1.0 - hyper.dropout)
        found, state = batch_heads(self.autoencoder, batch.x * keep, self.clusters)
        found = found._replace(logits_BY=hyper.sharpness * found.logits_BY)
        if phase == "reconstruction":
            recon = self.autoencoder.nll(batch.x, found.code).mean()
            return Out({"model": recon}, {"recon": recon}, state)
        discriminators = self.style_discriminator, self.class_discriminator
        return heads_adversarial_losses(discriminators, found, noise, hyper.class_weight)

    def encode(self, x_BCHW: Tensor) -> Tensor:
        """Return the style and the cluster probabilities."""
        return heads(self.autoencoder, x_BCHW, self.clusters).code

    def representation(self) -> Representation:
        return Representation(
            self.encode,
            self.latents + self.clusters,
            self.autoencoder.decode,
            parts=(Part("style", self.latents), Part("class", self.clusters, classes=True)),
            cluster=lambda x: self.encode(x)[:, self.latents :],
        )
