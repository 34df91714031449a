"""A data set and a model whose images are known in advance: brightness of the left and of the right half.

`left` and `right` are factors with four values each; a code is the brightness of both halves, and decoding paints it.
"""

import numpy as np
import torch
from torch import Tensor, nn

from unweave.config import RunConfig
from unweave.contract import Part, Representation
from unweave.data import Dataset
from unweave.evaluation.evaluate import Evaluation
from unweave.model import TrainedModel
from unweave.report.views import RunView
from unweave.runs import RunFolder

SIDE = 32


class HalvesData(Dataset):
    name, shape, size, options = "halves", (1, SIDE, SIDE), 16, {}
    factor_names, factor_sizes = ("left", "right"), (4, 4)
    factor_values = (("black", "dark", "light", "white"), (0.0, 1.0, 2.0, 3.0))

    def images(self, index_B: Tensor) -> Tensor:
        return paint(self.factors(index_B) / 3)


def paint(code_BZ: Tensor) -> Tensor:
    """Images [B, 1, H, W] of the brightness of the halves [B, 2]."""
    return code_BZ.repeat_interleave(SIDE // 2, 1)[:, None, None].expand(-1, 1, SIDE, -1).contiguous()


def look(images: Tensor) -> Tensor:
    """The brightness of both halves [..., 2]."""
    return images.unflatten(-1, (2, SIDE // 2)).mean((-4, -3, -1))


class Painter(nn.Module):
    """Stub of a trained method with a given representation."""

    equation = ""

    def __init__(self, representation: Representation, needs: tuple[str, ...] = ("x",)) -> None:
        super().__init__()
        self.given, self.needs = representation, needs
        self.weight = nn.Parameter(torch.zeros(()))

    def representation(self) -> Representation:
        return self.given


PARTS = (Part("content", 1), Part("style", 1))
SEES = Representation(look, 2, paint, parts=PARTS)


def trained(representation=SEES, supervision="groups(by=['left'], size=2)", folder=".", data=None, seed=0):
    adam = {"model": {"lr": 1e-4, "clip": 0.0}}
    config = RunConfig("Painter", {}, {}, "halves", {}, adam, supervision=supervision, steps=1, batch=2, seed=seed)
    needs = ("groups",) if supervision.startswith("groups") else ("x",)
    return TrainedModel(RunFolder(folder), config, Painter(representation, needs), data or HalvesData())


def scored(information=((1.3, 0.0), (0.0, 1.3)), kl=(3.0, 2.0), scores=None, names=("left", "right")):
    information = np.array(information, dtype=float)
    entropies = np.full(len(names), np.log(4))
    return Evaluation(scores or {}, names, information, entropies, np.array(kl, dtype=float), 10_000, 0)


def view(model, result=None):
    """Return the view of a stub on a page."""
    result = result or scored(np.full((model.representation.latents, 2), 0.5), np.ones(model.representation.latents))
    return RunView(model, result, {}, 1, starts=1)
