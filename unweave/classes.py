"""What a run learned of classes from labels: which class stands for which value, and how often it is wrong.

Shape letters: N observations, L labelled factors, Y classes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from unweave.contract import UserError
from unweave.data import Dataset, Sampler, load_data
from unweave.data.labelling import LabelledSet
from unweave.data.table import shown
from unweave.encoding import chosen_rows
from unweave.trained import Trained, load

BATCH = 512
Classify = Callable[[Tensor], tuple[Tensor, ...]]


class Told(NamedTuple):
    """What a run was told about one factor."""

    factor: str
    classes: dict[float | str, int]  # the model's class of each value of the factor
    size: int  # how many classes the model has
    known: set[int]  # the observations it was told of

    def names(self) -> list[str]:
        """What each of the model's classes is called: the value it stands for, or several."""
        values = [[value for value, number in self.classes.items() if number == y] for y in range(self.size)]
        return [" or ".join(_name(value) for value in some) or f"class {y}" for y, some in enumerate(values)]


def told_factors(trained: Trained) -> list[Told]:
    """The factors a run learned from labels, in the order of its classifier's answers."""
    data, config = trained.data, trained.config
    used = Sampler(data, ("labelled", "labels"), config["supervision"], seed=config["seed"]).labelled
    assert used is not None
    index_N, labels_NL = (part.cpu() for part in used.table)
    seed = torch.tensor(config["seed"] if used.want.seed is None else used.want.seed, device=used.table[0].device)
    # What a label would be for every observation: coarser or renamed as in training, and without mistakes.
    everything = LabelledSet(data, used.want._replace(n=data.size, noise=0.0, balanced=False), seed)
    all_N, all_NL = everything.table
    found = []
    for number, k in enumerate(used.want.factors):
        pairs = torch.stack([data.factors(all_N)[:, k], all_NL[:, number]], 1).unique(dim=0).tolist()
        classes = {data.factor_values[k][true]: label for true, label in pairs if true >= 0}
        known = set(index_N[labels_NL[:, number] >= 0].tolist())
        found.append(Told(data.factor_names[k], classes, used.sizes[number], known))
    return found


def true_classes(told: Told, data: Dataset) -> np.ndarray | None:
    """The model's number of the true class of each observation, -1 where it is not known; None if the data has none."""
    if told.factor not in data.factor_names:
        return None
    k = data.factor_names.index(told.factor)
    numbers = np.array([*(told.classes.get(value, -1) for value in data.factor_values[k]), -1])
    return numbers[data.factors(chosen_rows(data, None, 0))[:, k].cpu().numpy()]


def used_in_training(told: Told, count: int) -> np.ndarray:
    """Which of the run's own observations had a label that was used."""
    return np.isin(np.arange(count), list(told.known))


def fitting_data(trained: Trained, data: Any) -> tuple[Dataset, bool]:
    """A data set the model takes, on its device, and whether it is the very data of the run; None is that."""
    dataset = trained.data if data is None else load_data(data)
    if dataset.shape != trained.data.shape:
        raise UserError(
            f"data has images of shape {dataset.shape}, but the model takes {trained.data.shape}; give those"
        )
    same = bool(dataset.options) and (dataset.name, dataset.options) == (trained.data.name, trained.data.options)
    return dataset.to(next(trained.method.parameters()).device), dataset is trained.data or same


def image_batches(trained: Trained, data: Dataset) -> Iterator[Tensor]:
    """All images in order, on the model's device."""
    device = next(trained.method.parameters()).device
    for part in chosen_rows(data, None, 0).split(BATCH):
        yield data.images(part).to(device)


def classifier(trained: Trained) -> Classify:
    """From images to the probabilities of each factor's classes [B, Y]."""
    if trained.representation.classify is None:
        raise UserError(f"method '{trained.config['method']}' has no classes to predict; train one such as m2")
    return trained.representation.classify


def class_chances(classify: Classify, batches: Iterable[Tensor]) -> list[Tensor]:
    """The probabilities of the classes [N, Y] of all images, for each factor."""
    with torch.no_grad():
        found = [[part.float().cpu() for part in classify(images)] for images in batches]
    return [torch.cat(parts) for parts in zip(*found, strict=True)]


def class_error(run: str | Path | Trained, data: Any = None, *, device: str = "cpu") -> dict[str, float]:
    """Of each factor the share of wrong classes, among observations with a known one that was not used in training.

    `data` is a data set or its name; None is what the run was trained on.
    """
    trained = load(run, device=device) if isinstance(run, str | Path) else run
    classify, (dataset, trained_on) = classifier(trained), fitting_data(trained, data)
    chances, found = class_chances(classify, image_batches(trained, dataset)), {}
    for told, chance_NY in zip(told_factors(trained), chances, strict=True):
        true_N = true_classes(told, dataset)
        counted_N = np.zeros(dataset.size, dtype=bool) if true_N is None else true_N >= 0
        if trained_on:
            counted_N &= ~used_in_training(told, dataset.size)
        if true_N is None or not counted_N.any():
            raise UserError(f"data has no known {told.factor} beside the labels used in training; give data that has")
        found[told.factor] = float((chance_NY.argmax(1).numpy() != true_N)[counted_N].mean())
    return found


def _name(value: float | str) -> str:
    return value if isinstance(value, str) else shown(value)
