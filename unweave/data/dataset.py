"""What a data set is: a function from an index (or factors) to images.

Shape letters: N observations, B batch, K factors, C channels, H height, W width.
"""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor, nn

from unweave.contract import DataInfo
from unweave.data.ranges import Span
from unweave.errors import UserError


def source_info_of(data: Any) -> Any:
    """What there is to tell about a set, or about the one that it is a view of."""
    while not hasattr(data, "source_info") and isinstance(getattr(data, "data", None), Dataset):
        data = data.data
    return getattr(data, "source_info", None)


class Dataset(nn.Module):
    """Interface of all data sets. Stores are buffers, so `.to(device)` moves a set.

    `images` must be made of tensor operations only: the engine records it inside the training step.
    A grid holds every combination of its factors, the last factor fastest.
    """

    name: str
    shape: tuple[int, int, int]
    factor_names: tuple[str, ...]
    factor_sizes: tuple[int, ...]
    factor_values: tuple[tuple[float | str, ...], ...]  # what each class of each factor stands for
    factor_spans: tuple[
        tuple[Span, ...], ...
    ] = ()  # of a continuous one that was cut, where each class begins and ends
    size: int  # number of observations
    grid: bool = True
    options: dict[str, object]  # the arguments that re-create this set: load_data(name, **options)

    @property
    def info(self) -> DataInfo:
        return DataInfo(self.shape, self.size)

    @property
    def factor_types(self) -> tuple[str, ...]:
        """Of each factor, "discrete" or "continuous"."""
        return ("discrete",) * len(self.factor_names)

    def images(self, index_B: Tensor) -> Tensor:
        """Images [B, C, H, W], float32 in 0..1, of the observations with these numbers."""
        raise NotImplementedError

    def factors(self, index_B: Tensor) -> Tensor:
        """Factor classes [B, K], int64; -1 where a factor is not known."""
        rest, classes = index_B, []
        for size in reversed(self.factor_sizes):
            classes.append(rest % size)
            rest = rest // size
        return torch.stack(classes[::-1], dim=-1)

    def values(self, index_B: Tensor) -> Tensor:
        """Factors as numbers [B, K], float32: the value of a continuous one, the class of a discrete one, nan where
        not known."""
        classes_BK = self.factors(index_B)
        return classes_BK.float().masked_fill(classes_BK < 0, torch.nan)

    def index(self, factors_BK: Tensor) -> Tensor:
        """The observation that has these factor classes (grids only)."""
        if not self.grid:
            raise UserError(f"data '{self.name}' is not a full grid of factors; use a grid such as sprites or rooms")
        strides = [math.prod(self.factor_sizes[k + 1 :]) for k in range(len(self.factor_sizes))]
        return sum(factors_BK[..., k] * strides[k] for k in range(len(strides)))  # type: ignore[return-value]
