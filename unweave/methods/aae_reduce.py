"""AAE for dimensionality reduction: a few numbers that hold both the class, as a place, and the style around it."""

from __future__ import annotations

from typing import Annotated, Any, NamedTuple, final

import torch
from torch import Tensor, nn

from unweave.contract import Batch, DataInfo, Knob, Method, Out, Representation, normal
from unweave.errors import UserError
from unweave.nn.autoencoder import AutoEncoder
from unweave.nn.batch_norm import NormedEncoder
from unweave.nn.conditional import class_count
from unweave.nn.discriminator import Critic
from unweave.nn.heads import HEAD_NOISE, Heads, at_least, batch_heads, heads, heads_contest
from unweave.nn.networks import build_networks
from unweave.ops.partial_labels import cross_entropy, mistakes
from unweave.ops.separation import closeness

CLUSTERS = 20  # without labels, if nothing is said
SPREAD = 3.0  # standard deviation of the places at the start, in that of the style


@final
class AAEReduce(Method):
    """Makhzani et al. 2015, section 7 and figure 10; with labels if the supervision gives them."""

    class Hyper(NamedTuple):
        sigma: Annotated[Tensor, Knob(0.3, "standard deviation of the noise on the encoder's input")]
        eta: Annotated[Tensor, Knob(4.0, "distance under which two cluster heads push each other away")]

    paper = "Makhzani et al., Adversarial Autoencoders, 2015"
    equation = (
        "-E[log p(x|y W + z)] + sum_(i<j) max(0, eta - |W_i - W_j|), then -E_q(z)[log D_z(z)] - E_q(y)[log D_y(y)], "
        "D the critics' chances of being from the prior, then, with labels, -log q(y|x) of the labelled"
    )
    players = {  # the classifier with labels only
        "model": ("autoencoder", "places_YZ"),
        "critics": ("style_critic", "class_critic"),
        "encoder": ("autoencoder.encoder",),
        "classifier": ("autoencoder.encoder",),
    }
    phases = {
        "reconstruction": ("model",),
        "regularisation": ("critics", "encoder"),
        "classification": ("classifier",),
    }
    recipe = {
        "model": {"lr": 1e-4, "sgd": {"lr": 0.01, "momentum": 0.9}},
        "critics": {"lr": 1e-4, "betas": (0.5, 0.9), "sgd": {"lr": 0.1, "momentum": 0.1}},
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
        normed: bool = True,
    ) -> None:
        super().__init__()
        self.latents = at_least("latents", latents, 1)
        self.told = bool(data.labels)
        self.clusters = _clusters(clusters, data)
        if self.told:
            self.needs = ("x", "labelled", "labels")
        else:
            self.players = {p: parts for p, parts in self.players.items() if p != "classifier"}
            self.phases = {p: movers for p, movers in self.phases.items() if p != "classification"}
        self.noise = {**HEAD_NOISE, "input": normal("B", *data.shape)}
        self.autoencoder = AutoEncoder(data.shape, latents, net, likelihood)
        encoder = build_networks(net, data.shape, latents + self.clusters)[0]  # of both heads
        self.autoencoder.encoder = NormedEncoder(encoder, hidden=normed, classes=0 if self.told else self.clusters)
        self.places_YZ = nn.Parameter(SPREAD * torch.randn(self.clusters, latents))
        self.style_critic = Critic(latents, depth=2)
        self.class_critic = Critic(self.clusters, depth=2)

    def forward(self, batch: Batch, noise: Any, hyper: Hyper, step: Tensor, phase: str = "reconstruction") -> Out:
        x = batch.labelled if phase == "classification" else batch.x
        found, state = batch_heads(self.autoencoder, x + hyper.sigma * noise["input"], self.clusters)  # type: ignore[operator]
        if phase == "reconstruction":
            recon = self.autoencoder.nll(batch.x, self._code(found)).mean()  # type: ignore[arg-type]
            close = closeness(self.places_YZ, hyper.eta)
            return Out({"model": recon + close}, {"recon": recon, "closeness": close}, state)
        if phase == "regularisation":
            game = heads_contest(self.style_critic, self.class_critic, found, noise)
            return Out({"critics": game.critics, "encoder": game.generator}, game.logs)
        labels_B = batch.labels[:, 0]  # type: ignore[index]
        entropy, error = cross_entropy(found.logits_BY, labels_B).mean(), mistakes(found.logits_BY, labels_B).mean()
        return Out({"classifier": entropy}, {"cross_entropy": entropy, "accuracy": 1.0 - error})

    def _heads(self, x_BCHW: Tensor) -> Heads:
        return heads(self.autoencoder, x_BCHW, self.clusters)

    def _code(self, found: Heads) -> Tensor:
        """The place of the class, and the style beside it [B, Z]."""
        return found.class_BY @ self.places_YZ + found.style_BZ

    def probabilities(self, x_BCHW: Tensor) -> Tensor:
        """Of the classes, or of the clusters where no labels were given [B, Y]."""
        return self._heads(x_BCHW).class_BY

    def representation(self) -> Representation:
        return Representation(
            lambda x: self._code(self._heads(x)),
            self.latents,
            self.autoencoder.decode,
            classify=(lambda x: (self.probabilities(x),)) if self.told else None,
            cluster=None if self.told else self.probabilities,
        )


def _clusters(given: int, data: DataInfo) -> int:
    """As many as asked for; with labels one for each class."""
    if not data.labels:
        return at_least("clusters", given, 2) if given else CLUSTERS
    classes = class_count(data)
    if given not in (0, classes):
        raise UserError(f"clusters {given} does not fit the labels, which have {classes} classes; leave it 0")
    return classes
