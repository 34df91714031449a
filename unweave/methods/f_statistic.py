"""The F-statistic loss: an embedding in which every two classes differ surely in a few coordinates."""

from __future__ import annotations

from typing import Any, final

from torch import Tensor

from unweave.contract import Batch, DataInfo, Method, Out, Representation
from unweave.errors import UserError
from unweave.nn.embedding import Embedding
from unweave.ops.f_test import best_probabilities, class_pairs


@final
class FStatistic(Method):
    """Ridgeway & Mozer 2018: classes are told apart by an F test in their d best coordinates."""

    paper = "Ridgeway & Mozer, Learning Deep Disentangled Embeddings with the F-Statistic Loss, NeurIPS 2018"
    equation = "-1/P sum_(pairs of classes) sum_(k in their d best coordinates) log P(F < F_k), F ~ F(1, 2G-2)"
    needs = ("groups", "group_id")
    players = {"model": ("embedding",)}
    optimizer_defaults = {"model": {"lr": 2e-4}}

    def __init__(self, data: DataInfo, *, latents: int = 20, net: str = "locatello", d: int = 2) -> None:
        super().__init__()
        if data.groups == 1:
            raise UserError("supervision: one group only is large enough, with nothing to tell it from; give two")
        if not 1 <= d <= latents:
            raise UserError(f"d {d} is out of range; use 1 to {latents} of {latents} latents")
        self.latents, self.d = latents, d
        self.embedding = Embedding(data.shape, latents, net, bias=False)  # the loss is blind to it: it would only drift

    def forward(self, batch: Batch, noise: Any, hyper: Any, step: Tensor) -> Out:
        groups: Tensor = batch.groups  # type: ignore[assignment]
        members = groups.shape[1]
        if members < 2:
            raise UserError("groups of 1 have no spread to compare with; give groups(by=[...], size=2) or larger")
        pairs = class_pairs(self.embedding(groups.flatten(0, 1)).unflatten(0, groups.shape[:2]))
        best_Pd = best_probabilities(pairs, members, self.d)
        # A class that is drawn twice is not to be told from itself.
        differ_P = (batch.group_id[pairs.first_P] != batch.group_id[pairs.second_P]).to(best_Pd.dtype)  # type: ignore[index]
        share_P = differ_P / differ_P.sum().clamp_min(1.0)
        loss = -(best_Pd.log().sum(1) * share_P).sum()
        chance = (best_Pd.mean(1) * share_P).sum()
        return Out({"model": loss}, {"loss": loss, "probability": chance})

    def representation(self) -> Representation:
        return self.embedding.representation()
