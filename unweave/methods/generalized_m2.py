"""Generalised M2: partly labelled variables in a given graphical model."""

from typing import Annotated, Any, NamedTuple, final

import torch
from torch import Tensor

from unweave.contract import Batch, DataInfo, HyperParam, Method, Out, Representation, Setting, normal, uniform
from unweave.errors import check_integer
from unweave.nn.graphical_model import Estimate, GraphicalModel, GraphNoise, best_samples
from unweave.nn.graphical_spec import read_graph
from unweave.nn.settings import Latents, LikelihoodName, Net

M2_GRAPH = "q(y|x) q(z|x,y); p(x|y,z); labels: y; z: normal"


@final
class GeneralizedM2(Method):
    """Siddharth et al. 2017, the objective over labelled and unlabelled data by importance sampling."""

    class Hyper(NamedTuple):
        gamma: Annotated[Tensor, HyperParam(1.0, "weight of the mean over labelled observations")]
        alpha: Annotated[Tensor, HyperParam(50.0, "weight of the classification of labelled observations")]
        temperature: Annotated[
            Tensor, HyperParam(0.5, "temperature of the gradient of sampled classes (discrete=relaxed)", low=1e-3)
        ]

    paper = (
        "Siddharth et al., Learning Disentangled Representations with Semi-Supervised Deep Generative Models, "
        "NeurIPS 2017"
    )
    equation = (
        "-E_q(y,z|x)[log p(x,y,z) / q(y,z|x)] + gamma ( -sum_s w_s/Z log p(x,y,z_s) / q(y,z_s|x) "
        "- (1 + alpha) 1/S sum_s log w_s ), w_s = q(y|z_s,x), Z = sum_s w_s"
    )
    needs = ("x", "labelled", "labels")
    example_supervision = "labels(n=100, factors=['shape'])"
    players = {"model": ("autoencoder",)}
    optimizer_defaults = {"model": {"lr": 1e-4}}

    def __init__(
        self,
        data: DataInfo,
        *,
        latents: Latents = 10,
        net: Net = "locatello",
        likelihood: LikelihoodName = "bernoulli",
        graph: Annotated[str, Setting("variables and what each depends on; see the page of the method")] = M2_GRAPH,
        discrete: Annotated[
            str, Setting("enumerate (sum over unknown classes) or relaxed (sample them)")
        ] = "enumerate",
        samples: Annotated[int, Setting("samples for each labelled image; 0 is as many as the graph needs")] = 0,
    ) -> None:
        super().__init__()
        check_integer("latents", latents, 1)
        check_integer("samples", samples, 0, 10_000)
        self.latents = latents
        self.graph = read_graph(graph, data.labels, latents)
        self.samples = samples or best_samples(self.graph, discrete)
        self.autoencoder = GraphicalModel(self.graph, data.shape, net, likelihood, discrete)
        normals = sum(v.size for v in self.graph.variables if not v.classes)
        classes = sum(v.size for v in self.graph.variables if v.classes)
        self.noise = {}
        for name, count in (("", 1), ("_labelled", self.samples)):
            self.noise |= {f"eps{name}": normal(count, "B", normals)} if normals else {}
            self.noise |= {f"pick{name}": uniform(count, "B", classes)} if discrete == "relaxed" else {}

    def forward(self, batch: Batch, noise: Any, hyper: Hyper, step: Tensor) -> Out:
        labels_BL = batch.labels
        free = self._estimate(batch.x, torch.full_like(labels_BL, -1), 1, noise, "", hyper)
        labelled = self._estimate(batch.labelled, labels_BL, self.samples, noise, "_labelled", hyper)
        recon, kl = free.nll_B.mean(), free.kl_B.mean()
        bound, log_q = (labelled.nll_B + labelled.kl_B).mean(), labelled.log_w_B.mean()
        labelled_loss = bound - (1.0 + hyper.alpha) * log_q
        loss = recon + kl + hyper.gamma * labelled_loss
        logs = {"loss": loss, "recon": recon, "kl": kl, "labelled": labelled_loss, "cross_entropy": -log_q}
        wrong, known = (labelled.predicted_BL != labels_BL) & (labels_BL >= 0), (labels_BL >= 0).sum().clamp_min(1)
        return Out({"model": loss}, {**logs, "accuracy": 1.0 - wrong.sum() / known})

    def _estimate(self, x: Tensor, labels_BL: Tensor, samples: int, noise: Any, name: str, hyper: Hyper) -> Estimate:
        drawn = GraphNoise(noise.get(f"eps{name}"), noise.get(f"pick{name}"), hyper.temperature)
        return self.autoencoder(x, labels_BL, samples, drawn)

    @torch.no_grad()
    def classify(self, images: Tensor) -> tuple[Tensor, ...]:
        """Return the probabilities [B, classes] of each labelled variable, in the order of the labels."""
        parts = self.autoencoder.split(self.autoencoder.encode(images))
        return tuple(parts[v.name] for v in self.graph.labelled)

    def representation(self) -> Representation:
        model = self.autoencoder
        return Representation(
            model.encode,
            sum(model.sizes.values()),
            model.decode,
            parts=model.parts(),
            classify=self.classify,
            follow=model.follow,
            from_prior=model.from_prior if model.learned else None,
        )
