"""M1: a variational autoencoder of all images, then a classifier of its codes."""

import math
from typing import Annotated, Any, ClassVar, NamedTuple, final

import torch
from torch import Tensor, nn

from unweave.contract import Batch, DataInfo, HyperParam, Method, Out, Representation, Setting
from unweave.errors import check_choice, invalid
from unweave.nn.autoencoder import AutoEncoder
from unweave.nn.conditional import class_count, image_loss, image_noise
from unweave.nn.kernel_machine import KernelMachine
from unweave.nn.networks import init_weights
from unweave.nn.precision import at_least_float32
from unweave.nn.settings import Binarize, Latents, LikelihoodName, Net
from unweave.ops.partial_labels import one_hot, squared_hinge, unlabelled_loss

CENTRES = 1000  # number of features of the tsvm


@final
class M1Classifier(Method):
    """The second stage: a classifier of the first stage's codes; tsvm also learns from unlabelled codes."""

    class Hyper(NamedTuple):
        decay: Annotated[Tensor, HyperParam(1e-4, "weight of half the squared norm of the classifier's weights")]
        gamma: Annotated[Tensor, HyperParam(1.0, "tsvm: weight of unlabelled codes near a decision boundary")]
        balance: Annotated[
            Tensor, HyperParam(10.0, "tsvm: weight of the KL of class frequencies, labels to predictions")
        ]

    needs: tuple[str, ...] = ("x", "labelled", "labels")
    players = {"classifier": ("classifier",)}
    frozen = ("autoencoder",)
    # With this eps, weights of features that are nearly zero are not updated by noise.
    optimizer_defaults = {"classifier": {"lr": 1e-2, "eps": 1e-3}}

    def __init__(self, data: DataInfo, *, classifier: str = "tsvm", width: float = 2.5, previous: Method) -> None:
        super().__init__()
        self.autoencoder: AutoEncoder = previous.autoencoder  # type: ignore[assignment]
        self.latents = self.autoencoder.latents
        self.tsvm, classes = classifier == "tsvm", class_count(data)
        self.classifier: nn.Module
        if self.tsvm:
            self.classifier = KernelMachine(self._sample_codes(CENTRES), classes, width=width)
        else:
            self.needs = ("labelled", "labels")
            self.classifier = nn.Linear(self.latents, classes)
            init_weights(self.classifier)

    def forward(self, batch: Batch, noise: Any, hyper: Hyper, step: Tensor) -> Out:
        score_BY = self._scores(batch.labelled)
        y_BY = one_hot(batch.labels[:, 0], score_BY)
        penalty = 0.5 * hyper.decay * sum(p.square().sum() for p in self.classifier.parameters() if p.ndim > 1)
        logs = {"accuracy": (score_BY.argmax(1) == batch.labels[:, 0]).float().mean()}
        if not self.tsvm:
            cross = -(y_BY * score_BY.log_softmax(1)).sum(1).mean()
            return Out({"classifier": cross + penalty}, {"loss": cross + penalty, "cross_entropy": cross, **logs})
        other_BY, frequency_Y = self._scores(batch.x), y_BY.mean(0)
        hinge = squared_hinge(score_BY, 2.0 * y_BY - 1.0).sum(1).mean()
        first_B, second_B = other_BY.topk(2, dim=1).values.unbind(1)
        unsure = unlabelled_loss(0.5 * (first_B - second_B)).mean()
        # Finite for any scores.
        log_predicted_Y = (2.0 * other_BY).log_softmax(1).logsumexp(0) - math.log(len(other_BY))
        imbalance = (frequency_Y.xlogy(frequency_Y) - frequency_Y * log_predicted_Y).sum()
        loss = hinge + hyper.gamma * unsure + hyper.balance * imbalance + penalty
        logs |= {"loss": loss, "hinge": hinge, "unsure": unsure, "imbalance": imbalance}
        return Out({"classifier": loss}, logs)

    @torch.no_grad()
    def _sample_codes(self, count: int) -> Tensor:
        """Return the codes [F, Z] of images sampled from the model, which are distributed as those of the data."""
        drawn = self.autoencoder.decode(torch.randn(count, self.latents))
        return self.autoencoder.posterior(drawn)[0]

    def _scores(self, x: Tensor | None) -> Tensor:
        """Return the score of each class [B, Y] at the mean of q(z|x)."""
        return at_least_float32(self.classifier(self.autoencoder.posterior(x)[0].detach()))  # type: ignore[arg-type]

    def classify(self, x: Tensor) -> tuple[Tensor]:
        """Return class probabilities [B, Y]; those of tsvm are exp(2 score), normalised."""
        score_BY = self._scores(x)
        return ((2.0 * score_BY if self.tsvm else score_BY).softmax(1),)

    def representation(self) -> Representation:
        return self.autoencoder.representation()._replace(classify=self.classify)


@final
class M1(Method):
    """Kingma et al. 2014, section 2.1. The first stage is a VAE of all images, the second a classifier of its codes."""

    paper = "Kingma et al., Semi-supervised Learning with Deep Generative Models, NIPS 2014"
    equation = (
        "first -E_q(z|x)[log p(x|z)] + KL(q(z|x) || p(z)); then of codes z and scores f_c(z), y_c = 1 or -1, "
        "E_labelled[sum_c max(0, 1 - y_c f_c)^2] + gamma E[exp(-3 (f_1st - f_2nd)^2 / 4)] "
        "+ balance KL(frequencies of labels || E[softmax(2 f)]) + decay/2 |w|^2, or multinomial regression"
    )
    players = {"model": ("autoencoder",)}
    optimizer_defaults = {"model": {"lr": 3e-4}}
    next_stage: ClassVar[type[Method]] = M1Classifier
    example_supervision = "labels(n=100, factors=['shape'])"

    def __init__(
        self,
        data: DataInfo,
        *,
        latents: Latents = 50,
        net: Net = "kingma",
        likelihood: LikelihoodName = "bernoulli",
        classifier: Annotated[str, Setting("tsvm (which also learns from unlabelled images) or regression")] = "tsvm",
        width: Annotated[float, Setting("width of the kernel between codes, for tsvm")] = 2.5,
        binarize: Binarize = False,
    ) -> None:
        super().__init__()
        # Errors of the second stage are raised before the first one is trained.
        if class_count(data) < 2:
            raise invalid("supervision", data.supervision, "labels of a factor with 2 or more classes")
        check_choice("classifier", classifier, ("tsvm", "regression"))
        if not 0.0 < width < math.inf:
            raise invalid("width", width, "a number > 0")
        self.latents, self.noise = latents, image_noise(data.shape, binarize)
        self.autoencoder = AutoEncoder(data.shape, latents, net, likelihood)

    def forward(self, batch: Batch, noise: Any, hyper: Any, step: Tensor) -> Out:
        logs, _ = image_loss(self.autoencoder, batch.x, noise)
        return Out({"model": logs["loss"]}, logs)
