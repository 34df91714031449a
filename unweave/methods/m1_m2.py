"""M1+M2: a variational autoencoder of all images, then M2 on its codes."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, NamedTuple, final

import torch
from torch import Tensor

from unweave.contract import Batch, DataInfo, HyperParam, Method, Out, Representation, normal
from unweave.errors import UserError
from unweave.nn.autoencoder import AutoEncoder
from unweave.nn.conditional import (
    UsedCode,
    class_count,
    half_square,
    image_loss,
    image_noise,
    label_pass,
    m2_objective,
    of_codes,
)
from unweave.ops.divergence import reparametrize

UNUSED = 0.01  # nats: a coordinate of z1 that tells less of an image is noise
MOMENTUM = 0.01  # the share of the newest batch in what is known of that


@final
class M1M2Labels(Method):
    """The second stage: eq. 9, divided by the number of images, of codes z1 drawn from the first stage's q(z1|x)."""

    class Hyper(NamedTuple):
        alpha: Annotated[
            Tensor,
            HyperParam(1.0, "weight of the classifier's own loss on labelled images, per image of the set", "0.1"),
        ]
        decay: Annotated[Tensor, HyperParam(1.0, "precision of the normal prior on the second stage's weights", "1")]

    needs = ("x", "labelled", "labels")
    players = {"upper": ("upper",)}
    frozen = ("autoencoder",)
    optimizer_defaults = {"upper": {"lr": 3e-4}}

    def __init__(self, data: DataInfo, *, style: int = 50, previous: Method) -> None:
        super().__init__()
        self.data, self.latents = data, style
        self.autoencoder: AutoEncoder = previous.autoencoder  # type: ignore[assignment]
        kl_Z: Tensor = previous.kl_Z  # type: ignore[assignment]
        self.upper = of_codes(UsedCode(kl_Z > UNUSED), style, class_count(data))
        self.noise = {"eps_labelled": normal("B", "Z"), "eps": normal("B", "Z")}
        self.noise |= {name: normal("B", self.autoencoder.latents) for name in ("code_labelled", "code")}

    def forward(self, batch: Batch, noise: Any, hyper: Hyper, step: Tensor) -> Out:
        labelled_BZ, x_BZ = self._drawn(batch.labelled, noise["code_labelled"]), self._drawn(batch.x, noise["code"])
        eps = noise["eps_labelled"], noise["eps"]
        p = label_pass(self.upper, labelled_BZ, batch.labels[:, 0], x_BZ, eps)  # type: ignore[index]
        loss, logs = m2_objective(p, self.data, hyper.alpha, hyper.decay * half_square(self.upper))
        return Out({"upper": loss}, logs)

    def _drawn(self, x: Tensor | None, eps_BZ: Tensor) -> Tensor:
        """A code of each image, from q(z1|x)."""
        return self._used(reparametrize(*self.autoencoder.posterior(x), eps_BZ)).detach()  # type: ignore[arg-type]

    def _mean(self, x: Tensor) -> Tensor:
        return self._used(self.autoencoder.posterior(x)[0])

    def _used(self, code_BZ: Tensor) -> Tensor:
        return self.upper.nll.seen(code_BZ)  # type: ignore[attr-defined]

    def encode(self, x: Tensor) -> Tensor:
        """[B, Z + Y], from the mean of q(z1|x)."""
        return self.upper.code(self._mean(x))

    def decode(self, code: Tensor) -> Tensor:
        """Style and class to the mean of p(z1|y, z2), and that to the mean image."""
        return self.autoencoder.decode(self._used(self.upper.decoder(code)[:, : self.autoencoder.latents]))

    def classify(self, x: Tensor) -> tuple[Tensor]:
        """q(y|z1) at the mean of q(z1|x)."""
        return (self.upper.log_classes(self._mean(x)).exp(),)

    def representation(self) -> Representation:
        width = self.upper.latents + self.upper.classes
        return Representation(self.encode, width, self.decode, parts=self.upper.parts(), classify=self.classify)


@final
class M1M2(Method):
    """Kingma et al. 2014, section 3: the two models, trained one after the other. First the VAE of all images, M1."""

    paper = "Kingma et al., Semi-supervised Learning with Deep Generative Models, NIPS 2014"
    equation = (
        "first -E_q(z1|x)[log p(x|z1)] + KL(q(z1|x) || p(z1)); then of z1 from q(z1|x), 1/N ( sum_labelled L(z1,y) + "
        "sum_unlabelled U(z1) + alpha N E_labelled[-log q(y|z1)] - log p(weights) ), L and U as for m2"
    )
    players = {"model": ("autoencoder",)}
    optimizer_defaults = {"model": {"lr": 3e-4}}
    next_stage: ClassVar[type[Method]] = M1M2Labels

    def __init__(
        self,
        data: DataInfo,
        *,
        latents: int = 50,
        net: str = "kingma",
        likelihood: str = "bernoulli",
        style: int = 50,
        binarize: bool = False,
    ) -> None:
        super().__init__()
        class_count(data)  # what the second stage would refuse is refused before the first is trained
        if style < 1:
            raise UserError(f"style {style} is too small; use 1 or more")
        self.latents, self.noise = latents, image_noise(data.shape, binarize)
        self.autoencoder = AutoEncoder(data.shape, latents, net, likelihood)
        self.kl_Z: Tensor
        self.register_buffer("kl_Z", torch.ones(latents))  # a running average; in use until it shows

    def forward(self, batch: Batch, noise: Any, hyper: Any, step: Tensor) -> Out:
        found = image_loss(self.autoencoder, batch.x, noise)  # type: ignore[arg-type]
        return Out({"model": found.loss}, found.logs, {"kl_Z": self.kl_Z.lerp(found.kl_Z.detach(), MOMENTUM)})
