"""The F-statistic loss: an embedding in which every two classes differ significantly in some coordinates."""

from typing import Annotated, Any, final

from torch import Tensor

from unweave.contract import Batch, DataInfo, Method, Out, Representation, Setting
from unweave.errors import check_integer, invalid
from unweave.nn.embedding import Embedding
from unweave.nn.settings import Latents, Net
from unweave.ops.f_test import best_probabilities, class_pairs


@final
class FStatistic(Method):
    """Ridgeway & Mozer 2018: classes are separated by an F test in their d best coordinates."""

    paper = "Ridgeway & Mozer, Learning Deep Disentangled Embeddings with the F-Statistic Loss, NeurIPS 2018"
    equation = "-1/P sum_(pairs of classes) sum_(k in their d best coordinates) log P(F < F_k), F ~ F(1, 2G-2)"
    needs = ("groups", "group_id")
    example_supervision = "groups(by=['floor_hue', 'wall_hue'], size=8, distinct=True)"
    players = {"model": ("embedding",)}
    optimizer_defaults = {"model": {"lr": 2e-4}}

    def __init__(
        self,
        data: DataInfo,
        *,
        latents: Latents = 20,
        net: Net = "locatello",
        d: Annotated[int, Setting("number of latents in which every two classes have to differ")] = 2,
    ) -> None:
        super().__init__()
        if data.groups == 1:
            raise invalid("supervision", data.supervision, "groups(...) with at least two groups of the given size")
        check_integer("d", d, 1, latents, context=f"{latents} latents")
        self.latents, self.d = latents, d
        self.embedding = Embedding(data.shape, latents, net, bias=False)  # the loss does not depend on it

    def forward(self, batch: Batch, noise: Any, hyper: Any, step: Tensor) -> Out:
        groups, members = batch.groups, batch.groups.shape[1]
        if members < 2:
            raise invalid("supervision", f"groups of {members}", "groups(by=[...], size=2) or larger groups")
        pairs = class_pairs(self.embedding(groups.flatten(0, 1)).unflatten(0, groups.shape[:2]))
        best_Pd = best_probabilities(pairs, members, self.d)
        # A class that is drawn twice is not compared with itself.
        differ_P = (batch.group_id[pairs.first_P] != batch.group_id[pairs.second_P]).to(best_Pd.dtype)
        weight_P = differ_P / differ_P.sum().clamp_min(1.0)
        loss = -(best_Pd.log().sum(1) * weight_P).sum()
        probability = (best_Pd.mean(1) * weight_P).sum()
        return Out({"model": loss}, {"loss": loss, "probability": probability})

    def representation(self) -> Representation:
        return self.embedding.representation()
