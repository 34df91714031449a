"""M2: a variational autoencoder with a class that is known for some of the images."""

from typing import Annotated, Any, NamedTuple, final

from torch import Tensor

from unweave.contract import Batch, DataInfo, HyperParam, Method, Out, Representation, normal, uniform
from unweave.nn.conditional import class_count, half_squared_norm, image_conditional, label_pass, m2_objective
from unweave.nn.likelihoods import find_likelihood
from unweave.nn.settings import Binarize, Latents, LikelihoodName, Net
from unweave.ops.partial_labels import binary_sample


@final
class M2(Method):
    """Kingma et al. 2014, eq. 9, divided by the number of images."""

    class Hyper(NamedTuple):
        alpha: Annotated[
            Tensor,
            HyperParam(300.0, "weight of the classifier's loss on labelled images, per image of the data set", "0.1"),
        ]
        decay: Annotated[Tensor, HyperParam(1.0, "precision of the normal prior of the weights; 0 is no prior", "1")]

    paper = "Kingma et al., Semi-supervised Learning with Deep Generative Models, NIPS 2014"
    equation = (
        "1/N ( sum_labelled L(x,y) + sum_unlabelled U(x) + alpha N E_labelled[-log q(y|x)] - log p(weights) ), "
        "L = -E_q(z|x,y)[log p(x|y,z)] - log p(y) + KL(q(z|x,y) || p(z)), U = sum_y q(y|x) L(x,y) - H(q(y|x))"
    )
    needs = ("x", "labelled", "labels")
    example_supervision = "labels(n=100, factors=['shape'])"
    players = {"model": ("autoencoder",)}
    optimizer_defaults = {"model": {"lr": 3e-4}}

    def __init__(
        self,
        data: DataInfo,
        *,
        latents: Latents = 50,
        net: Net = "kingma",
        likelihood: LikelihoodName = "bernoulli",
        binarize: Binarize = False,
    ) -> None:
        super().__init__()
        self.data, self.latents, self.binarize = data, latents, binarize
        self.likelihood = find_likelihood(likelihood)
        self.noise = {"eps_labelled": normal("B", "Z"), "eps": normal("B", "Z")}
        if binarize:
            self.noise |= {name: uniform("B", *data.shape) for name in ("pixels_labelled", "pixels")}
        self.autoencoder = image_conditional(net, data.shape, latents, class_count(data), likelihood)

    def forward(self, batch: Batch, noise: Any, hyper: Hyper, step: Tensor) -> Out:
        labelled, x = batch.labelled, batch.x
        if self.binarize:
            labelled, x = binary_sample(labelled, noise["pixels_labelled"]), binary_sample(x, noise["pixels"])  # type: ignore[arg-type]
        eps = noise["eps_labelled"], noise["eps"]
        p = label_pass(self.autoencoder, labelled, batch.labels[:, 0], x, eps)
        loss, logs = m2_objective(p, self.data, hyper.alpha, hyper.decay * half_squared_norm(self.autoencoder))
        return Out({"model": loss}, logs)

    def decode(self, code: Tensor) -> Tensor:
        """Return the mean image of p(x|y, z) for codes [B, Z + Y]; a one-hot class part is that class."""
        return self.likelihood.mean(self.autoencoder.decoder(code))

    def representation(self) -> Representation:
        model = self.autoencoder
        return Representation(
            model.encode,
            model.latents + model.classes,
            self.decode,
            parts=model.parts(),
            classify=lambda x: (model.log_classes(x).exp(),),
        )
