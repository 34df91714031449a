"""Classification with a model that learned classes from labels: predicted classes, their confidence, error rates.

Shape letters: N observations, B batch, Y classes.
"""

from __future__ import annotations

import warnings
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
from unweave.data.used_labels import UsedLabels, digests_of, read_used_labels, used_labels
from unweave.data.user.input_images import SUFFIXES, image_files, read_images
from unweave.errors import UserError, UserNotice, invalid
from unweave.evaluation.codes import sample_indices
from unweave.model import TrainedModel, load, load_training_data
from unweave.nn.batch_size import images_per_call

if TYPE_CHECKING:
    import pandas as pd

BATCH = 512  # images in one call of the classifier, if they fit into memory
_UNKNOWN = "which observations were labelled in training is not known, because the run does not store it"
Classify = Callable[[Tensor], tuple[Tensor, ...]]


class Observations(NamedTuple):
    """What is classified: images in batches, with their names and the data set, if they are one."""

    column: str  # "file" or "row"
    names: list[Any]
    images: Callable[[], Iterator[Tensor]]
    labelled: Callable[[], np.ndarray | None]  # see `_labelled`; to be called after all images were read
    data: Dataset | None = None


def label_mappings(trained: TrainedModel) -> list[LabelMapping]:
    """Return the mapping of each factor that the run learned, in the order of the outputs of its classifier."""
    if isinstance(trained.data, DatasetMetadata):
        return trained.data.label_mappings
    labelled = trained.supervision.labelled_set(trained.data, trained.config.seed)
    assert labelled is not None
    return label_mapping.label_mappings(labelled)


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
    for part in sample_indices(data, None, 0).split(_batch(trained)):
        yield data.images(part).to(_device(trained))


# --- predictions and error rates --------------------------------------------------------------------------------------


def class_error(run: str | Path | TrainedModel, data: Any = None, *, device: str = "cpu") -> dict[str, float]:
    """Return the error rate of each factor on observations with a known class that was not used in training.

    `data` is a data set or its name; None is the data set of the run. Observations that were labelled in training are
    left out, also if they are in other data; a notice says how many, or that they are not known.
    """
    trained = _load_if_path(run, data, device)
    classify, dataset = classifier(trained), _compatible_data(trained, data)
    probabilities, errors = class_probabilities(classify, image_batches(trained, dataset)), {}
    labelled_NL = _labelled(trained, dataset)
    for number, (mapping, probs_NY) in enumerate(zip(label_mappings(trained), probabilities, strict=True)):
        true_N = true_classes(mapping, dataset)
        known_N = np.zeros(dataset.size, dtype=bool) if true_N is None else true_N >= 0
        counted_N = known_N if labelled_NL is None else known_N & ~labelled_NL[:, number]
        if true_N is None or not counted_N.any():
            accepted = f"a data set with labels of {mapping.factor} that were not used for training"
            hint = f"all {known_N.sum()} with a known class were labelled in training" if known_N.any() else ""
            raise invalid("data", dataset.name, accepted, hint=hint)
        if labelled_NL is None:
            message = f"class_error: {mapping.factor}: {_UNKNOWN}"
            warnings.warn(message, UserNotice, stacklevel=2)
        elif data is not None and counted_N.sum() < known_N.sum():
            left_out = f"{known_N.sum() - counted_N.sum():,} of {known_N.sum():,} observations"
            message = f"class_error: {mapping.factor}: {left_out} were labelled in training and are left out"
            warnings.warn(message, UserNotice, stacklevel=2)
        errors[mapping.factor] = float((probs_NY.argmax(1).numpy() != true_N)[counted_N].mean())
    return errors


def predict(run: str | Path | TrainedModel, data: Any = None, *, device: str = "cpu") -> pd.DataFrame:
    """Return a table with one row per observation: its file or index, the most probable class, and its probability.

    `data` is a data set, its name or call text, or image files or folders; None is the data set of the run. The columns
    of each factor F are F and F_confidence; F_true if the data have labels; F_right, whether the label is in the
    predicted class, if a class stands for several values; F_labelled, whether a label of this observation (or of an
    equal image) was used in training, unless that is not known.
    """
    import pandas as pd

    trained = _load_if_path(run, data, device)
    classify, observations = classifier(trained), _observations(trained, data)
    probabilities, mappings = class_probabilities(classify, observations.images()), label_mappings(trained)
    taken, labelled_NL = {mapping.factor for mapping in mappings}, observations.labelled()
    column = next(name for name in (observations.column, "picture", "observation", "_") if name not in taken)
    is_file = observations.column == "file"  # names of files may be bytes that are not text, which need dtype object
    table: dict[str, Any] = {column: pd.Series(observations.names, dtype=object if is_file else None)}
    for number, (mapping, probs_NY) in enumerate(zip(mappings, probabilities, strict=True)):
        table |= _columns(probs_NY, mapping, observations.data)
        if labelled_NL is not None:
            table[f"{mapping.factor}_labelled"] = labelled_NL[:, number]
    return pd.DataFrame(table)


def _columns(probs_NY: Tensor, mapping: LabelMapping, data: Dataset | None) -> dict[str, Any]:
    factor, (confidence_N, class_N) = mapping.factor, probs_NY.max(1)
    names = np.array([*mapping.names(), None], dtype=object)
    columns = {factor: names[class_N], f"{factor}_confidence": confidence_N.numpy()}
    true_N = None if data is None else true_classes(mapping, data)
    if data is not None and true_N is not None and (true_N >= 0).any():
        columns[f"{factor}_true"] = _true_values(mapping, data) if mapping.many_to_one else names[true_N]
        if mapping.many_to_one:  # the name of the class differs from the value in the table
            columns[f"{factor}_right"] = np.where(true_N >= 0, class_N.numpy() == true_N, None)
    return columns


def accuracy_lines(frame: pd.DataFrame) -> list[str]:
    """Return the accuracy of each factor in a table of `predict`, separately for labels used in training.

    Without known classes, return how many images were labelled in training.
    """
    factors = [str(name) for name in frame if f"{name}_confidence" in frame]
    return [line for factor in factors for line in _accuracy_lines(frame, factor)]


def _accuracy_lines(frame: pd.DataFrame, factor: str) -> list[str]:
    labelled = frame.get(f"{factor}_labelled")
    if f"{factor}_true" not in frame:
        if labelled is None or not labelled.any():
            return []
        return [f"{factor}: {labelled.sum():,} of {len(frame):,} images are images that were labelled in training"]
    known = frame[f"{factor}_right" if f"{factor}_right" in frame else f"{factor}_true"].notna()
    if labelled is None:
        return [f"{_accuracy(frame[known], factor)} with a known class; {_UNKNOWN}"]
    new, used = frame[known & ~labelled], frame[known & labelled]
    left_out = f" ({len(used)} labelled ones are left out)" if len(used) else ""
    lines = [f"{_accuracy(new, factor)} with a known class, not labelled in training{left_out}"] if len(new) else []
    return lines + ([f"{_accuracy(used, factor)} labelled in training"] if len(used) else [])


def _accuracy(rows: pd.DataFrame, factor: str) -> str:
    correct = rows.get(f"{factor}_right", rows[factor] == rows[f"{factor}_true"])
    return f"{factor}: {100 * correct.astype(bool).mean():.2f} % correct of {len(rows)} observations"


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
        return data.exact_values(sample_indices(data, None, 0))[:, k].numpy()
    values = np.array([*(np.nan if isinstance(v, str) else v for v in data.factor_values[k]), np.nan], dtype=float)
    return values[_factor(data, k)]


def _factor(data: Dataset, k: int) -> np.ndarray:
    return data.factors(sample_indices(data, None, 0))[:, k].cpu().numpy()


# --- labels used in training ------------------------------------------------------------------------------------------


def _labelled(trained: TrainedModel, data: Dataset) -> np.ndarray | None:
    """Return which observations had a label of each factor in training [N, L]; None if that is not known."""
    used = _used_labels(trained)
    return None if used is None else used.find(data)


def _used_labels(trained: TrainedModel) -> UsedLabels | None:
    """Return the labelled observations of a run, as its folder stores them or as its data determine them."""
    used = read_used_labels(trained.folder)
    if used is not None:
        return used
    data = trained.data
    if isinstance(data, DatasetMetadata):  # a run of an older version, or on rendered data
        try:
            data = load_training_data(trained.folder)
        except UserError:
            return None
    labelled = trained._replace(data=data).supervision.labelled_set(data, trained.config.seed)
    return None if labelled is None else used_labels(labelled)


# --- what is classified -----------------------------------------------------------------------------------------------


def _load_if_path(run: str | Path | TrainedModel, data: Any, device: str) -> TrainedModel:
    """Return the run; without its own data if other data are classified."""
    return run if isinstance(run, TrainedModel) else load(run, device=device, with_data=data is None)


def _device(trained: TrainedModel) -> torch.device:
    return next(trained.method.parameters()).device


def _batch(trained: TrainedModel) -> int:
    """Return the number of images in one call of the classifier."""
    return images_per_call(classifier(trained), trained.data.shape, _device(trained), most=BATCH)


def _compatible_data(trained: TrainedModel, data: Any) -> Dataset:
    """Return the data on the device of the model; None stands for the data of the run."""
    if data is None and isinstance(trained.data, DatasetMetadata):
        message = f"run '{trained.folder.path}' was loaded without its data; pass data to classify"
        raise UserError(message, argument="data", accepted="a data set, or image files")
    dataset = trained.data if data is None else load_data(data)
    if dataset.shape != trained.data.shape:
        raise invalid("data", dataset.shape, f"data with images of shape {trained.data.shape}, as in training")
    return dataset.to(_device(trained))


def _observations(trained: TrainedModel, data: Any) -> Observations:
    if _are_image_paths(data):
        return _image_files(trained, data)
    dataset = _compatible_data(trained, data)
    files = dataset.source_info.file_names
    names: list[Any] = list(files) or list(range(dataset.size))
    column = "file" if files else "row"
    return Observations(
        column, names, lambda: image_batches(trained, dataset), lambda: _labelled(trained, dataset), dataset
    )


def _are_image_paths(data: Any) -> bool:
    """Return True for image files or folders of them, False for a data set."""
    if isinstance(data, list | tuple):
        return bool(data) and all(isinstance(item, str | Path) for item in data)
    if not isinstance(data, str | Path) or data in DATASETS:  # './digits' is a folder of that name
        return False
    return Path(data).is_dir() or Path(data).suffix.lower() in SUFFIXES


def _image_files(trained: TrainedModel, paths: Any) -> Observations:
    files, batch, used = image_files(paths), _batch(trained), _used_labels(trained)
    digests: list[np.ndarray] = []

    def images() -> Iterator[Tensor]:
        for start in range(0, len(files), batch):
            arrays = read_images(files[start : start + batch], trained.preprocessing)
            pixels = torch.as_tensor(arrays, dtype=torch.float32)
            digests.append(digests_of(pixels))
            yield pixels.to(_device(trained))

    def labelled() -> np.ndarray | None:
        return None if used is None else used.find_images(np.concatenate(digests))

    return Observations("file", [str(file) for file in files], images, labelled)
