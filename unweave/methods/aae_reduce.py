"""AAE for dimensionality reduction: a few numbers that hold both the class, as a place, and the style around it."""

from __future__ import annotations

from typing import Annotated, Any, NamedTuple, final

import torch
from torch import Tensor, nn

from unweave.contract import Batch, DataInfo, HyperParam, Method, Out, Representation, normal
from unweave.errors import UserError
from unweave.nn.autoencoder import AutoEncoder
from unweave.nn.batch_norm import BatchNormEncoder
from unweave.nn.conditional import class_count
from unweave.nn.discriminator import Discriminator
from unweave.nn.heads import HEAD_NOISE, Heads, batch_heads, check_minimum, heads, heads_adversarial_losses
from unweave.nn.networks import build_networks
from unweave.ops.partial_labels import cross_entropy, zero_one_loss
from unweave.ops.separation import repulsion

CLUSTERS = 20  # without labels, if nothing is said
SPREAD = 3.0  # standard deviation of the places at the start, in that of the style


@final
class AAEReduce(Method):
    """Makhzani et al. 2015, section 7 and figure 10; with labels if the supervision gives them."""

    class Hyper(NamedTuple):
        sigma: Annotated[Tensor, HyperParam(0.3, "standard deviation of the noise on the encoder's input")]
        eta: Annotated[Tensor, HyperParam(4.0, "distance under which two cluster heads push each other away")]

    paper = "Makhzani et al., Adversarial Autoencoders, 2015"
    equation = (
        "-E[log p(x|y W + z)] + sum_(i<j) max(0, eta - |W_i - W_j|), then -E_q(z)[log D_z(z)] - E_q(y)[log D_y(y)], "
        "D the critics' chances of being from the prior, then, with labels, -log q(y|x) of the labelled"
    )
    players = {  # the classifier with labels only
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

    prior = "places"  # a code is normal around the place of its class

    def __init__(
        self,
        data: DataInfo,
        *,
        latents: int = 2,
        clusters: int = 0,
        net: str = "locatello",
        likelihood: str = "bernoulli",
        batch_norm: bool = True,
    ) -> None:
        super().__init__()
        self.latents = check_minimum("latents", latents, 1)
        self.has_labels = bool(data.labels)
        self.clusters = _clusters(clusters, data)
        if self.has_labels:
            self.needs = ("x", "labelled", "labels")
        else:
            self.players = {p: parts for p, parts in self.players.items() if p != "classifier"}
            self.phases = {p: movers for p, movers in self.phases.items() if p != "classification"}
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
            recon = self.autoencoder.nll(batch.x, self._code(found)).mean()  # type: ignore[arg-type]
            close = repulsion(self.cluster_heads, hyper.eta)
            return Out({"model": recon + close}, {"recon": recon, "repulsion": close}, state)
        if phase == "regularisation":
            game = heads_adversarial_losses(self.style_discriminator, self.class_discriminator, found, noise)
            return Out({"discriminators": game.discriminators, "encoder": game.generator}, game.logs)
        labels_B = batch.labels[:, 0]  # type: ignore[index]
        entropy, error = (
            cross_entropy(found.logits_BY, labels_B).mean(),
            zero_one_loss(found.logits_BY, labels_B).mean(),
        )
        return Out({"classifier": entropy}, {"cross_entropy": entropy, "accuracy": 1.0 - error})

    def _heads(self, x_BCHW: Tensor) -> Heads:
        return heads(self.autoencoder, x_BCHW, self.clusters)

    def _code(self, found: Heads) -> Tensor:
        """The place of the class, and the style beside it [B, Z]."""
        return found.class_BY @ self.cluster_heads + found.style_BZ

    def probabilities(self, x_BCHW: Tensor) -> Tensor:
        """Of the classes, or of the clusters where no labels were given [B, Y]."""
        return self._heads(x_BCHW).class_BY

    def representation(self) -> Representation:
        return Representation(
            lambda x: self._code(self._heads(x)),
            self.latents,
            self.autoencoder.decode,
            classify=(lambda x: (self.probabilities(x),)) if self.has_labels else None,
            cluster=None if self.has_labels else self.probabilities,
        )


def _clusters(given: int, data: DataInfo) -> int:
    """As many as asked for; with labels one for each class."""
    if not data.labels:
        return check_minimum("clusters", given, 2) if given else CLUSTERS
    classes = class_count(data)
    if given not in (0, classes):
        raise UserError(f"clusters {given} does not fit the labels, which have {classes} classes; leave it 0")
    return classes
