"""What is looked at while a run trains, and never trained on: how often it names classes that nobody told it.

Shape letters: N observations, B batch, L labelled factors.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor

from unweave.contract import Method
from unweave.data import Dataset
from unweave.data.supervision.label_mapping import labelled_set
from unweave.data.supervision.labels import LabelledSet
from unweave.training.build import is_streamed

MAX_SAMPLES = 1000  # observations that are looked at
_BATCH = 500
ValidationFunction = Callable[[], dict[str, float]]


def make_validation(method: Method, config: Mapping[str, Any], data: Dataset) -> ValidationFunction | None:
    """A look at the method as it is: the share of unlabelled observations with a known class that it names rightly.

    None if it names no classes, if no such observation is there, or if each would have to be read from disk.
    """
    used = None if is_streamed(data) else labelled_set(data, config["supervision"], config["seed"])
    if used is None or not _names_classes(method):
        return None
    index_N, true_NL = sample_unlabelled(used)
    names = [data.factor_names[k] for k in used.spec.factors]
    ends = [""] if len(names) == 1 else [f"_{name}" for name in names]
    known_L = (true_NL >= 0).sum(0).tolist()

    def validate() -> dict[str, float]:
        right_L = _right(method, data, index_N, true_NL).tolist()
        return {
            f"unlabelled_accuracy{end}": right / known
            for end, right, known in zip(ends, right_L, known_L, strict=True)
            if known
        }

    return validate if any(known_L) else None


def _names_classes(method: Method) -> bool:
    """A method of one's own may learn without saying what its representation is; it is not asked then."""
    says = type(method).representation is not Method.representation or hasattr(method, "autoencoder")
    return says and method.representation().classify is not None


def sample_unlabelled(used: LabelledSet, most: int = MAX_SAMPLES) -> tuple[Tensor, Tensor]:
    """Some observations that have no label, and their classes [N, L] as labels would have them, -1 where not known."""
    data, device = used.data, used.seed.device
    order_N = torch.randperm(data.size, generator=torch.Generator().manual_seed(0)).to(device)
    order_N = order_N[~torch.isin(order_N, used.table[0])]
    columns = data.factors(order_N)[:, list(used.spec.factors)]
    chosen_N = (columns >= 0).any(1).nonzero()[:most, 0]
    labels = [
        torch.where(column < 0, column, used.class_labels(number)[column.clamp_min(0)])
        for number, column in enumerate(columns[chosen_N].unbind(1))
    ]
    return order_N[chosen_N], torch.stack(labels, 1)


def _right(method: Method, data: Dataset, index_N: Tensor, true_NL: Tensor) -> Tensor:
    """How many classes of each factor are named rightly [L]."""
    classify = method.representation().classify
    assert classify is not None
    right_L = torch.zeros(true_NL.shape[1], dtype=torch.int64, device=true_NL.device)
    with torch.no_grad():
        for index_B, true_BL in zip(index_N.split(_BATCH), true_NL.split(_BATCH), strict=True):
            told_BL = torch.stack([chance.argmax(1) for chance in classify(data.images(index_B))], 1)
            right_L += (told_BL == true_BL).sum(0)
    return right_L
