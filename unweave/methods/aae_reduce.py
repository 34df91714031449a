"""AAE for dimensionality reduction: the code is the head of a cluster plus the style."""

from typing import Annotated, Any, NamedTuple, final

import torch
from torch import Tensor, nn

from unweave.contract import Batch, DataInfo, HyperParam, Method, Out, Representation, Setting, normal
from unweave.errors import check_integer, invalid
from unweave.nn.autoencoder import AutoEncoder
from unweave.nn.batch_norm import BatchNormEncoder
from unweave.nn.conditional import class_count
from unweave.nn.discriminator import Discriminator
from unweave.nn.heads import (
    HEAD_NOISE,
    Heads,
    batch_heads,
    classification_loss,
    heads,
    heads_adversarial_losses,
)
from unweave.nn.networks import build_networks
from unweave.nn.settings import BatchNormed, Latents, LikelihoodName, Net
from unweave.ops.separation import repulsion

CLUSTERS = 20  # default number without labels
SPREAD = 3.0  # standard deviation of the initial cluster heads, relative to that of the style


@final
class AAEReduce(Method):
    """Makhzani et al. 2015, section 7 and figure 10; with labels if the supervision gives them."""

    class Hyper(NamedTuple):
        sigma: Annotated[Tensor, HyperParam(0.3, "standard deviation of the noise on the encoder's input")]
        eta: Annotated[Tensor, HyperParam(4.0, "distance below which two cluster heads repel each other")]

    paper = "Makhzani et al., Adversarial Autoencoders, 2015"
    equation = (
        "-E[log p(x|y W + z)] + sum_(i<j) max(0, eta - |W_i - W_j|), then -E_q(z)[log D_z(z)] - E_q(y)[log D_y(y)], "
        "D the discriminators' probabilities of being from the prior, then, with labels, -log q(y|x) of the labelled"
    )
    players = {  # the classifier only with labels
        "model": ("autoencoder", "cluster_heads"),
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
    prior = "cluster_heads"  # a code is normal around the head of its class
    objective = "recon"

    def __init__(
        self,
        data: DataInfo,
        *,
        latents: Latents = 2,
        clusters: Annotated[
            int, Setting("number of clusters; 0 is the number of classes of the labels, or 20 without labels")
        ] = 0,
        net: Net = "locatello",
        likelihood: LikelihoodName = "bernoulli",
        batch_norm: BatchNormed = True,
    ) -> None:
        super().__init__()
        self.latents = check_integer("latents", latents, 1)
        self.has_labels = bool(data.labels)
        self.clusters = _clusters(clusters, data)
        if self.has_labels:
            self.needs = ("x", "labelled", "labels")
        else:
            self.players = {p: parts for p, parts in self.players.items() if p != "classifier"}
            self.phases = {p: players for p, players in self.phases.items() if p != "classification"}
        self.noise = {**HEAD_NOISE, "input": normal("B", *data.shape)}
        self.autoencoder = AutoEncoder(data.shape, latents, net, likelihood)
        encoder = build_networks(net, data.shape, latents + self.clusters)[0]  # of both heads
        self.autoencoder.encoder = BatchNormEncoder(
            encoder, hidden=batch_norm, classes=0 if self.has_labels else self.clusters
        )
        self.cluster_heads = nn.Parameter(SPREAD * torch.randn(self.clusters, latents))
        self.style_discriminator = Discriminator(latents, depth=2)
        self.class_discriminator = Discriminator(self.clusters, depth=2)

    def forward(self, batch: Batch, noise: Any, hyper: Hyper, step: Tensor, phase: str = "reconstruction") -> Out:
        x = batch.labelled if phase == "classification" else batch.x
        found, state = batch_heads(self.autoencoder, x + hyper.sigma * noise["input"], self.clusters)  # type: ignore[operator]
        if phase == "reconstruction":
            recon = self.autoencoder.nll(batch.x, self._code(found)).mean()
            penalty = repulsion(self.cluster_heads, hyper.eta)
            return Out({"model": recon + penalty}, {"recon": recon, "repulsion": penalty}, state)
        if phase == "regularisation":
            return heads_adversarial_losses((self.style_discriminator, self.class_discriminator), found, noise)
        return classification_loss(found, batch.labels)

    def _code(self, found: Heads) -> Tensor:
        """Return the heads of the classes, weighted by their probabilities, plus the style [B, Z]."""
        return found.class_BY @ self.cluster_heads + found.style_BZ

    def probabilities(self, x_BCHW: Tensor) -> Tensor:
        """Return the probabilities of the classes, or without labels of the clusters [B, Y]."""
        return heads(self.autoencoder, x_BCHW, self.clusters).class_BY

    def representation(self) -> Representation:
        return Representation(
            lambda x: self._code(heads(self.autoencoder, x, self.clusters)),
            self.latents,
            self.autoencoder.decode,
            classify=(lambda x: (self.probabilities(x),)) if self.has_labels else None,
            cluster=None if self.has_labels else self.probabilities,
        )


def _clusters(given: int, data: DataInfo) -> int:
    """Return the number of clusters, which equals the number of classes if there are labels."""
    if not data.labels:
        return check_integer("clusters", given, 2) if given else CLUSTERS
    classes = class_count(data)
    if given not in (0, classes):
        raise invalid("clusters", given, f"0 or {classes}, the number of classes of the labels")
    return classes
