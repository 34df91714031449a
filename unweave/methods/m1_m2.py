"""M1+M2: a variational autoencoder of all images, then M2 on its codes."""

from typing import Annotated, Any, ClassVar, NamedTuple, final

import torch
from torch import Tensor, nn

from unweave.contract import Batch, DataInfo, HyperParam, Method, Out, Representation, normal
from unweave.errors import check_integer
from unweave.nn.autoencoder import AutoEncoder
from unweave.nn.conditional import (
    UsedCode,
    class_count,
    code_conditional,
    half_squared_norm,
    image_loss,
    image_noise,
    label_pass,
    m2_objective,
)
from unweave.nn.settings import Binarize, Latents, LikelihoodName, Net, StyleLatents
from unweave.ops.divergence import reparametrize

UNUSED = 0.01  # coordinates of z1 with a smaller KL, in nats, are ignored
MOMENTUM = 0.01  # weight of the newest batch in the running average of the KL


@final
class M1M2Labels(Method):
    """The second stage: eq. 9, divided by the number of images, for codes z1 sampled from q(z1|x)."""

    class Hyper(NamedTuple):
        alpha: Annotated[
            Tensor,
            HyperParam(1.0, "weight of the classifier's loss on labelled images, per image of the data set", "0.1"),
        ]
        decay: Annotated[Tensor, HyperParam(1.0, "precision of the normal prior of the second stage's weights", "1")]

    needs = ("x", "labelled", "labels")
    players = {"upper": ("upper",)}
    frozen = ("autoencoder",)
    optimizer_defaults = {"upper": {"lr": 3e-4}}

    def __init__(self, data: DataInfo, *, style: int = 50, previous: Method) -> None:
        super().__init__()
        self.data, self.latents = data, style
        self.autoencoder: AutoEncoder = previous.autoencoder  # type: ignore[assignment]
        kl_Z: Tensor = previous.kl_Z  # type: ignore[assignment]
        self.upper = code_conditional(UsedCode(kl_Z > UNUSED), style, class_count(data))
        self.noise = {"eps_labelled": normal("B", "Z"), "eps": normal("B", "Z")}
        self.noise |= {name: normal("B", self.autoencoder.latents) for name in ("code_labelled", "code")}

    def forward(self, batch: Batch, noise: Any, hyper: Hyper, step: Tensor) -> Out:
        labelled_BZ, x_BZ = self._sample(batch.labelled, noise["code_labelled"]), self._sample(batch.x, noise["code"])
        eps = noise["eps_labelled"], noise["eps"]
        p = label_pass(self.upper, labelled_BZ, batch.labels[:, 0], x_BZ, eps)
        loss, logs = m2_objective(p, self.data, hyper.alpha, hyper.decay * half_squared_norm(self.upper))
        return Out({"upper": loss}, logs)

    def _sample(self, x: Tensor, eps_BZ: Tensor) -> Tensor:
        """Return a sample of q(z1|x) for each image."""
        return self._used(reparametrize(*self.autoencoder.posterior(x), eps_BZ)).detach()

    def _mean(self, x: Tensor) -> Tensor:
        return self._used(self.autoencoder.posterior(x)[0])

    def _used(self, code_BZ: Tensor) -> Tensor:
        return self.upper.nll.mask(code_BZ)  # type: ignore[attr-defined]

    def encode(self, x: Tensor) -> Tensor:
        """Return the codes [B, Z + Y] of the means of q(z1|x)."""
        return self.upper.encode(self._mean(x))

    def decode(self, code: Tensor) -> Tensor:
        """Return the mean image at the mean of p(z1|y, z2)."""
        return self.autoencoder.decode(self._used(self.upper.decoder(code)[:, : self.autoencoder.latents]))

    def classify(self, x: Tensor) -> tuple[Tensor]:
        """Return q(y|z1) at the mean of q(z1|x)."""
        return (self.upper.log_classes(self._mean(x)).exp(),)

    def representation(self) -> Representation:
        width = self.upper.latents + self.upper.classes
        return Representation(self.encode, width, self.decode, parts=self.upper.parts(), classify=self.classify)


@final
class M1M2(Method):
    """Kingma et al. 2014, section 3: M1, a VAE of all images, then M2 on its codes."""

    paper = "Kingma et al., Semi-supervised Learning with Deep Generative Models, NIPS 2014"
    equation = (
        "first -E_q(z1|x)[log p(x|z1)] + KL(q(z1|x) || p(z1)); then of z1 from q(z1|x), 1/N ( sum_labelled L(z1,y) + "
        "sum_unlabelled U(z1) + alpha N E_labelled[-log q(y|z1)] - log p(weights) ), L and U as for m2"
    )
    players = {"model": ("autoencoder",)}
    optimizer_defaults = {"model": {"lr": 3e-4}}
    next_stage: ClassVar[type[Method]] = M1M2Labels
    example_supervision = "labels(n=100, factors=['shape'])"

    def __init__(
        self,
        data: DataInfo,
        *,
        latents: Latents = 50,
        net: Net = "kingma",
        likelihood: LikelihoodName = "bernoulli",
        style: StyleLatents = 50,
        binarize: Binarize = False,
    ) -> None:
        super().__init__()
        class_count(data)  # errors of the second stage are raised before the first one is trained
        check_integer("style", style, 1)
        self.latents, self.noise = latents, image_noise(data.shape, binarize)
        self.autoencoder = AutoEncoder(data.shape, latents, net, likelihood)
        self.kl_Z = nn.Buffer(torch.ones(latents))  # running average; the initial value counts as used

    def forward(self, batch: Batch, noise: Any, hyper: Any, step: Tensor) -> Out:
        logs, kl_Z = image_loss(self.autoencoder, batch.x, noise)
        return Out({"model": logs["loss"]}, logs, {"kl_Z": self.kl_Z.lerp(kl_Z.detach(), MOMENTUM)})
