"""What a run learned of classes from labels: which class stands for which value, and how often it is wrong.

Shape letters: N observations, L labelled factors, Y classes.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from unweave.data import Dataset, load_data
from unweave.data.metadata import DatasetMetadata
from unweave.data.supervision import label_mapping
from unweave.data.supervision.label_mapping import LabelMapping, exact_values, format_value
from unweave.errors import UserError
from unweave.evaluation.codes import sample_indices
from unweave.model import TrainedModel, load

BATCH = 512
Classify = Callable[[Tensor], tuple[Tensor, ...]]


def label_mappings(trained: TrainedModel) -> list[LabelMapping]:
    """The factors a run learned from labels, in the order of its classifier's answers."""
    if isinstance(trained.data, DatasetMetadata):
        return trained.data.label_mappings
    labelled = trained.supervision.labelled_set(trained.data, trained.config.seed)
    assert labelled is not None
    return label_mapping.label_mappings(labelled, with_indices=True)


def load_if_path(run: str | Path | TrainedModel, data: Any, device: str) -> TrainedModel:
    """The run; one that is to look at other data than its own is opened without these."""
    return run if isinstance(run, TrainedModel) else load(run, device=device, with_data=data is None)


def true_classes(mapping: LabelMapping, data: Dataset) -> np.ndarray | None:
    """The model's number of the true class of each observation, -1 where it is not known; None if the data has none."""
    if mapping.factor not in data.factor_names:
        return None
    k = data.factor_names.index(mapping.factor)
    if mapping.spans:
        return mapping.class_of(_numbers(data, k))
    numbers = np.array([*(mapping.classes.get(value, -1) for value in data.factor_values[k]), -1])
    return numbers[data.factors(sample_indices(data, None, 0))[:, k].cpu().numpy()]


def true_values(mapping: LabelMapping, data: Dataset) -> np.ndarray:
    """What the table says of a factor, of each observation: a number of a continuous one, else a name, or None."""
    k = data.factor_names.index(mapping.factor)
    if mapping.spans:
        return np.array([None if np.isnan(number) else number for number in _numbers(data, k).tolist()], dtype=object)
    names = np.array([*map(format_value, data.factor_values[k]), None], dtype=object)
    return names[data.factors(sample_indices(data, None, 0))[:, k].cpu().numpy()]


def _numbers(data: Dataset, k: int) -> np.ndarray:
    """A factor that the model knows as continuous, as numbers; of a set that has texts instead none is known."""
    if data.factor_types[k] == "continuous":
        return exact_values(data, k)
    values = np.array([*(np.nan if isinstance(v, str) else v for v in data.factor_values[k]), np.nan], dtype=float)
    return values[data.factors(sample_indices(data, None, 0))[:, k].cpu().numpy()]


def used_in_training(mapping: LabelMapping, count: int) -> np.ndarray:
    """Which of the run's own observations had a label that was used."""
    return np.isin(np.arange(count), list(mapping.labelled_indices))


def compatible_data(trained: TrainedModel, data: Any) -> tuple[Dataset, bool]:
    """A data set the model takes, on its device, and whether it is the very data of the run; None is that."""
    if data is None and isinstance(trained.data, DatasetMetadata):
        raise UserError(f"run '{trained.folder.path}' was loaded without its data; give data to classify")
    dataset = trained.data if data is None else load_data(data)
    if dataset.shape != trained.data.shape:
        raise UserError(
            f"data has images of shape {dataset.shape}, but the model takes {trained.data.shape}; give those"
        )
    same = bool(dataset.options) and _call(dataset) == _call(trained.data)
    return dataset.to(next(trained.method.parameters()).device), dataset is trained.data or same


def _call(data: Dataset) -> str:
    """What makes this set again, also where it was read from a run's config, which knows no tuples."""
    return json.dumps([data.name, data.options], sort_keys=True, default=str)


def image_batches(trained: TrainedModel, data: Dataset) -> Iterator[Tensor]:
    """All images in order, on the model's device."""
    device = next(trained.method.parameters()).device
    for part in sample_indices(data, None, 0).split(BATCH):
        yield data.images(part).to(device)


def classifier(trained: TrainedModel) -> Classify:
    """From images to the probabilities of each factor's classes [B, Y]."""
    if trained.representation.classify is None:
        if type(trained.method).next_stage is not None:
            raise UserError(
                f"run '{trained.folder.path}' is unfinished, and its classes come with its last stage; go on with it: "
                f"unweave train --resume {trained.folder.path}"
            )
        raise UserError(f"method '{trained.config.method}' has no classes to predict; train one such as m2")
    return trained.representation.classify


def class_probabilities(classify: Classify, batches: Iterable[Tensor]) -> list[Tensor]:
    """The probabilities of the classes [N, Y] of all images, for each factor."""
    with torch.no_grad():
        found = [[part.float().cpu() for part in classify(images)] for images in batches]
    return [torch.cat(parts) for parts in zip(*found, strict=True)]


def class_error(run: str | Path | TrainedModel, data: Any = None, *, device: str = "cpu") -> dict[str, float]:
    """Of each factor the share of wrong classes, among observations with a known one that was not used in training.

    `data` is a data set or its name; None is what the run was trained on.
    """
    trained = load_if_path(run, data, device)
    classify, (dataset, trained_on) = classifier(trained), compatible_data(trained, data)
    trained = trained._replace(data=dataset) if trained_on else trained
    chances, found = class_probabilities(classify, image_batches(trained, dataset)), {}
    for mapping, chance_NY in zip(label_mappings(trained), chances, strict=True):
        true_N = true_classes(mapping, dataset)
        counted_N = np.zeros(dataset.size, dtype=bool) if true_N is None else true_N >= 0
        if trained_on:
            counted_N &= ~used_in_training(mapping, dataset.size)
        if true_N is None or not counted_N.any():
            raise UserError(
                f"data has no known {mapping.factor} beside the labels used in training; give data that has"
            )
        found[mapping.factor] = float((chance_NY.argmax(1).numpy() != true_N)[counted_N].mean())
    return found
