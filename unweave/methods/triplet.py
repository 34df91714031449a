"""The triplet loss: an embedding in which images of one class are closer than images of different classes."""

from typing import Annotated, Any, NamedTuple, final

import torch
import torch.nn.functional as F
from torch import Tensor

from unweave.contract import Batch, DataInfo, HyperParam, Method, Out, Representation, Setting
from unweave.nn.embedding import Embedding
from unweave.nn.settings import Latents, Net


@final
class Triplet(Method):
    """Schroff et al. 2015, section 3.1: a margin between the squared distances to a positive and to a negative."""

    class Hyper(NamedTuple):
        margin: Annotated[Tensor, HyperParam(0.2, "required difference of the squared distances", paper="0.2")]

    paper = "Schroff et al., FaceNet: A Unified Embedding for Face Recognition and Clustering, CVPR 2015"
    equation = "max(0, |f(x) - f(positive)|^2 - |f(x) - f(negative)|^2 + margin)"
    needs = ("x", "positive", "negative")
    example_supervision = "triplets(by=['floor_hue'])"
    players = {"model": ("embedding",)}
    optimizer_defaults = {"model": {"lr": 1e-4}}

    def __init__(
        self,
        data: DataInfo,
        *,
        latents: Latents = 20,
        net: Net = "locatello",
        sphere: Annotated[bool, Setting("scale embeddings to length 1")] = True,
    ) -> None:
        super().__init__()
        self.latents = latents
        self.embedding = Embedding(data.shape, latents, net, sphere=sphere)

    def forward(self, batch: Batch, noise: Any, hyper: Hyper, step: Tensor) -> Out:
        images = torch.cat([batch.x, batch.positive, batch.negative])
        x_BZ, positive_BZ, negative_BZ = self.embedding(images).chunk(3)
        near_B, far_B = (x_BZ - positive_BZ).square().sum(1), (x_BZ - negative_BZ).square().sum(1)
        violation_B = F.relu(near_B - far_B + hyper.margin)
        loss = violation_B.mean()
        active = (violation_B > 0).to(violation_B.dtype).mean()
        return Out({"model": loss}, {"loss": loss, "near": near_B.mean(), "far": far_B.mean(), "active": active})

    def representation(self) -> Representation:
        return self.embedding.representation()
