"""Classification with a model that learned classes from labels: predicted classes, their confidence, error rates.

Shape letters: N observations, B batch, Y classes.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from unweave.data import DATASETS, Dataset, load_data
from unweave.data.metadata import DatasetMetadata
from unweave.data.supervision import label_mapping
from unweave.data.supervision.label_mapping import LabelMapping, format_value
from unweave.data.user.arrays import exact_values
from unweave.data.user.input_images import SUFFIXES, image_files, read_images
from unweave.errors import UserError, invalid
from unweave.evaluation.codes import sample_indices
from unweave.model import TrainedModel, load

if TYPE_CHECKING:
    import pandas as pd

BATCH = 512
Classify = Callable[[Tensor], tuple[Tensor, ...]]


class Observations(NamedTuple):
    """What is classified: images in batches, with their names and the data set, if they are one."""

    column: str  # "file" or "row"
    names: list[Any]
    images: Callable[[], Iterator[Tensor]]
    data: Dataset | None
    trained_on: bool  # True if this is the data set of the run


def label_mappings(trained: TrainedModel) -> list[LabelMapping]:
    """Return the mapping of each factor that the run learned, in the order of the outputs of its classifier."""
    if isinstance(trained.data, DatasetMetadata):
        return trained.data.label_mappings
    labelled = trained.supervision.labelled_set(trained.data, trained.config.seed)
    assert labelled is not None
    return label_mapping.label_mappings(labelled, with_indices=True)


def classifier(trained: TrainedModel) -> Classify:
    """Return the function from images to the class probabilities [B, Y] of each factor."""
    if trained.representation.classify is not None:
        return trained.representation.classify
    if type(trained.method).next_stage is not None:
        path = str(trained.folder.path)
        message = f"run '{path}' predicts classes only after its last stage; resume it: unweave train --resume {path}"
        raise UserError(message, argument="run", value=path, accepted="a finished run")
    raise invalid("method", trained.config.method, "a method that predicts classes, such as m2")


def class_probabilities(classify: Classify, batches: Iterable[Tensor]) -> list[Tensor]:
    """Return the class probabilities [N, Y] of all images for each factor."""
    with torch.no_grad():
        found = [[part.float().cpu() for part in classify(images)] for images in batches]
    return [torch.cat(parts) for parts in zip(*found, strict=True)]


def image_batches(trained: TrainedModel, data: Dataset) -> Iterator[Tensor]:
    """Yield all images in order, on the device of the model."""
    device = next(trained.method.parameters()).device
    for part in sample_indices(data, None, 0).split(BATCH):
        yield data.images(part).to(device)


# --- predictions and error rates --------------------------------------------------------------------------------------


def class_error(run: str | Path | TrainedModel, data: Any = None, *, device: str = "cpu") -> dict[str, float]:
    """Return the error rate of each factor on observations with a known class that was not used in training.

    `data` is a data set or its name; None is the data set of the run.
    """
    trained = _load_if_path(run, data, device)
    classify, (dataset, trained_on) = classifier(trained), _compatible_data(trained, data)
    trained = trained._replace(data=dataset) if trained_on else trained
    probabilities, errors = class_probabilities(classify, image_batches(trained, dataset)), {}
    for mapping, probs_NY in zip(label_mappings(trained), probabilities, strict=True):
        true_N = true_classes(mapping, dataset)
        counted_N = np.zeros(dataset.size, dtype=bool) if true_N is None else true_N >= 0
        if trained_on:
            counted_N &= ~_used_in_training(mapping, dataset.size)
        if true_N is None or not counted_N.any():
            accepted = f"a data set with labels of {mapping.factor} that were not used for training"
            raise invalid("data", dataset.name, accepted)
        errors[mapping.factor] = float((probs_NY.argmax(1).numpy() != true_N)[counted_N].mean())
    return errors


def predict(run: str | Path | TrainedModel, data: Any = None, *, device: str = "cpu") -> pd.DataFrame:
    """Return a table with one row per observation: its file or index, the most probable class, and its probability.

    `data` is a data set, its name or call text, or image files or folders; None is the data set of the run. The columns
    of each factor F are F and F_confidence; F_true if the data have labels; F_right, whether the label is in the
    predicted class, if a class stands for several values; F_labelled, for the data set of the run: whether the label
    was used in training.
    """
    import pandas as pd

    trained = _load_if_path(run, data, device)
    classify, observations = classifier(trained), _observations(trained, data)
    if observations.trained_on and observations.data is not None:
        trained = trained._replace(data=observations.data)
    probabilities, mappings = class_probabilities(classify, observations.images()), label_mappings(trained)
    taken = {mapping.factor for mapping in mappings}
    column = next(name for name in (observations.column, "picture", "observation", "_") if name not in taken)
    is_file = observations.column == "file"  # names of files may be bytes that are not text, which need dtype object
    table: dict[str, Any] = {column: pd.Series(observations.names, dtype=object if is_file else None)}
    for mapping, probs_NY in zip(mappings, probabilities, strict=True):
        table |= _columns(probs_NY, mapping, observations)
    return pd.DataFrame(table)


def _columns(probs_NY: Tensor, mapping: LabelMapping, observations: Observations) -> dict[str, Any]:
    factor, (confidence_N, class_N) = mapping.factor, probs_NY.max(1)
    names = np.array([*mapping.names(), None], dtype=object)
    columns = {factor: names[class_N], f"{factor}_confidence": confidence_N.numpy()}
    true_N = None if observations.data is None else true_classes(mapping, observations.data)
    if observations.data is not None and true_N is not None and (true_N >= 0).any():
        columns[f"{factor}_true"] = _true_values(mapping, observations.data) if mapping.many_to_one else names[true_N]
        if mapping.many_to_one:  # the name of the class differs from the value in the table
            columns[f"{factor}_right"] = np.where(true_N >= 0, class_N.numpy() == true_N, None)
        if observations.trained_on:
            columns[f"{factor}_labelled"] = _used_in_training(mapping, len(true_N))
    return columns


def accuracy_lines(frame: pd.DataFrame) -> list[str]:
    """Return the accuracy of each factor in a table of `predict`, separately for labels used in training."""
    lines = []
    for factor in [str(name) for name in frame if f"{name}_confidence" in frame and f"{name}_true" in frame]:
        known = frame[f"{factor}_right" if f"{factor}_right" in frame else f"{factor}_true"].notna()
        for used in (False, True):
            rows = frame[known & (frame.get(f"{factor}_labelled", False) == used)]
            if len(rows):
                same = rows[factor] == rows[f"{factor}_true"]
                percent = 100 * rows.get(f"{factor}_right", same).astype(bool).mean()
                which = "labelled in training" if used else "with a known class, not labelled in training"
                lines.append(f"{factor}: {percent:.2f} % correct of {len(rows)} observations {which}")
    return lines


# --- classes and values of the data -----------------------------------------------------------------------------------


def true_classes(mapping: LabelMapping, data: Dataset) -> np.ndarray | None:
    """Return the model's class of the true value of each observation, -1 if unknown; None if data lack the factor."""
    if mapping.factor not in data.factor_names:
        return None
    k = data.factor_names.index(mapping.factor)
    if mapping.spans:
        return mapping.class_of(_numbers(data, k))
    numbers = np.array([*(_class_of(mapping, value) for value in data.factor_values[k]), -1])
    return numbers[_factor(data, k)]


def _class_of(mapping: LabelMapping, value: float | str) -> int:
    """Return the model's class of a value, -1 if it has none."""
    if value not in mapping.classes and isinstance(value, str) and value.isdecimal():
        value = float(value)  # earlier versions read 007 as a number
    return mapping.classes.get(value, -1)


def _true_values(mapping: LabelMapping, data: Dataset) -> np.ndarray:
    """Return the value of the factor for each observation: a number if continuous, else its name, or None."""
    k = data.factor_names.index(mapping.factor)
    if mapping.spans:
        return np.array([None if np.isnan(number) else number for number in _numbers(data, k).tolist()], dtype=object)
    return np.array([*map(format_value, data.factor_values[k]), None], dtype=object)[_factor(data, k)]


def _numbers(data: Dataset, k: int) -> np.ndarray:
    """Return the values of a factor as numbers; texts are unknown."""
    if data.factor_types[k] == "continuous":
        return exact_values(data, sample_indices(data, None, 0))[:, k].numpy()
    values = np.array([*(np.nan if isinstance(v, str) else v for v in data.factor_values[k]), np.nan], dtype=float)
    return values[_factor(data, k)]


def _factor(data: Dataset, k: int) -> np.ndarray:
    return data.factors(sample_indices(data, None, 0))[:, k].cpu().numpy()


def _used_in_training(mapping: LabelMapping, count: int) -> np.ndarray:
    """Return which observations of the run's data set had a label that was used."""
    return np.isin(np.arange(count), list(mapping.labelled_indices))


# --- what is classified -----------------------------------------------------------------------------------------------


def _load_if_path(run: str | Path | TrainedModel, data: Any, device: str) -> TrainedModel:
    """Return the run; without its own data if other data are classified."""
    return run if isinstance(run, TrainedModel) else load(run, device=device, with_data=data is None)


def _compatible_data(trained: TrainedModel, data: Any) -> tuple[Dataset, bool]:
    """Return the data on the device of the model, and whether they are the data of the run, which None stands for."""
    if data is None and isinstance(trained.data, DatasetMetadata):
        message = f"run '{trained.folder.path}' was loaded without its data; pass data to classify"
        raise UserError(message, argument="data", accepted="a data set, or image files")
    dataset = trained.data if data is None else load_data(data)
    if dataset.shape != trained.data.shape:
        raise invalid("data", dataset.shape, f"data with images of shape {trained.data.shape}, as in training")
    # In JSON, tuples and lists are equal.
    calls = [json.dumps([d.name, d.options], sort_keys=True, default=str) for d in (dataset, trained.data)]
    same = bool(dataset.options) and calls[0] == calls[1]
    return dataset.to(next(trained.method.parameters()).device), dataset is trained.data or same


def _observations(trained: TrainedModel, data: Any) -> Observations:
    if _are_image_paths(data):
        return _image_files(trained, data)
    dataset, trained_on = _compatible_data(trained, data)
    files = dataset.source_info.file_names
    names: list[Any] = list(files) or list(range(dataset.size))
    column = "file" if files else "row"
    return Observations(column, names, lambda: image_batches(trained, dataset), dataset, trained_on)


def _are_image_paths(data: Any) -> bool:
    """Return True for image files or folders of them, False for a data set."""
    if isinstance(data, list | tuple):
        return bool(data) and all(isinstance(item, str | Path) for item in data)
    if not isinstance(data, str | Path) or data in DATASETS:  # './digits' is a folder of that name
        return False
    return Path(data).is_dir() or Path(data).suffix.lower() in SUFFIXES


def _image_files(trained: TrainedModel, paths: Any) -> Observations:
    files = image_files(paths)
    preprocessing, device = trained.preprocessing, next(trained.method.parameters()).device

    def images() -> Iterator[Tensor]:
        for start in range(0, len(files), BATCH):
            pixels = read_images(files[start : start + BATCH], preprocessing)
            yield torch.as_tensor(pixels, dtype=torch.float32, device=device)

    return Observations("file", [str(file) for file in files], images, None, False)
