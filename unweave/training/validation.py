"""Validation during training: the accuracy of class predictions on observations without a label.

Shape letters: N observations, B batch, L labelled factors.
"""

from collections.abc import Callable

import torch
from torch import Tensor

from unweave.contract import Method
from unweave.data import Dataset
from unweave.data.supervision.labelled_set import LabelledSet
from unweave.errors import UserError
from unweave.nn.batch_size import images_per_call
from unweave.training.cohort import Run

MAX_SAMPLES = 1000  # observations in the validation set
_BATCH = 500  # observations in one call of the classifier, if they fit into memory
ValidationFunction = Callable[[], dict[str, float]]


def make_validation(method: Method, run: Run) -> ValidationFunction | None:
    """Return a function that computes the accuracy on unlabelled observations whose class is known.

    Return None if the method predicts no classes, if there is no such observation, or if the data are not resident.
    """
    data = run.data
    used = run.supervision.labelled_set(data, run.config.seed) if data.resident else None
    try:
        classify = None if used is None else method.representation().classify
    except UserError:  # a user's method may lack a representation
        return None
    if used is None or classify is None:
        return None
    index_N, true_NL = sample_unlabelled(used)
    batch = images_per_call(classify, data.shape, index_N.device, most=_BATCH)
    names = [data.factor_names[k] for k in used.spec.factors]
    ends = [""] if len(names) == 1 else [f"_{name}" for name in names]
    known_L = (true_NL >= 0).sum(0).tolist()

    def validate() -> dict[str, float]:
        correct_L = _count_correct(method, data, index_N, true_NL, batch).tolist()
        return {
            f"unlabelled_accuracy{end}": correct / known
            for end, correct, known in zip(ends, correct_L, known_L, strict=True)
            if known
        }

    return validate if any(known_L) else None


def sample_unlabelled(labelled: LabelledSet, max_samples: int = MAX_SAMPLES) -> tuple[Tensor, Tensor]:
    """Return indices of unlabelled observations and their classes [N, L], numbered as labels; -1 if unknown."""
    data, device = labelled.data, labelled.seed.device
    order_N = torch.randperm(data.size, generator=torch.Generator().manual_seed(0)).to(device)
    order_N = order_N[~labelled.is_labelled(order_N)]
    columns = data.factors(order_N)[:, list(labelled.spec.factors)]
    chosen_N = (columns >= 0).any(1).nonzero()[:max_samples, 0]
    labels = [
        torch.where(column < 0, column, labelled.class_labels(number)[column.clamp_min(0)])
        for number, column in enumerate(columns[chosen_N].unbind(1))
    ]
    return order_N[chosen_N], torch.stack(labels, 1)


def _count_correct(method: Method, data: Dataset, index_N: Tensor, true_NL: Tensor, batch: int) -> Tensor:
    """Return the number of correct predictions of each factor [L]."""
    classify = method.representation().classify
    assert classify is not None
    correct_L = torch.zeros(true_NL.shape[1], dtype=torch.int64, device=true_NL.device)
    with torch.no_grad():
        for index_B, true_BL in zip(index_N.split(batch), true_NL.split(batch), strict=True):
            predicted_BL = torch.stack([chance.argmax(1) for chance in classify(data.images(index_B))], 1)
            correct_L += (predicted_BL == true_BL).sum(0)
    return correct_L
