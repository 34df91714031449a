"""Classes of observations by a model that learned them from labels: their names, how sure it is, how often it is right.

Shape letters: N observations, Y classes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from unweave.data import DATASETS, Dataset
from unweave.data.user.folder import read_image_like
from unweave.data.user.input_images import SUFFIXES, image_files, read_image
from unweave.evaluation.classification import (
    BATCH,
    LabelMapping,
    class_error,
    class_probabilities,
    classifier,
    compatible_data,
    image_batches,
    label_mappings,
    load_if_path,
    true_classes,
    true_values,
    used_in_training,
)
from unweave.model import TrainedModel

if TYPE_CHECKING:
    import pandas as pd

Pictures = str | Path | Sequence[str | Path]


class Observations(NamedTuple):
    """What is to be classified: images in batches, what each is called, and the data set if there is one."""

    column: str  # "file" or "row"
    names: list[Any]
    images: Callable[[], Iterator[Tensor]]
    data: Dataset | None
    trained_on: bool  # the very data of the run


def predict(run: str | Path | TrainedModel, data: Any = None, *, device: str = "cpu") -> pd.DataFrame:
    """A row for every observation: its file or number, the most probable class by name, and the probability.

    `data` is a data set, its name or call text, picture files or folders of them; None is what the run was trained on.
    For each factor F the columns are F and F_confidence; F_true, what the data say of it, where they do; F_right,
    whether that is in the class, where a class stands for several values;
    and, of the run's own data, F_labelled: whether its label was used in training.
    """
    import pandas as pd

    trained = load_if_path(run, data, device)
    classify, seen = classifier(trained), _observations(trained, data)
    if seen.trained_on and seen.data is not None:
        trained = trained._replace(data=seen.data)
    chances = class_probabilities(classify, seen.images())
    factors = label_mappings(trained)
    taken = {told.factor for told in factors}
    column = next(name for name in (seen.column, "picture", "observation", "_") if name not in taken)
    table: dict[str, Any] = {column: seen.names}
    for told, chance_NY in zip(factors, chances, strict=True):
        table |= _columns(chance_NY, told, seen)
    return pd.DataFrame(table)


def accuracy_lines(frame: pd.DataFrame) -> list[str]:
    """How often each factor is right, apart for observations whose label was used in training."""
    lines = []
    for factor in _factors(frame):
        for used in (False, True):
            checked = _checked(frame, factor, used)
            if len(checked):
                same = checked[factor] == checked[f"{factor}_true"]
                right = checked.get(f"{factor}_right", same).astype(bool).mean()
                which = "labelled in training" if used else "with a known class, not labelled in training"
                lines.append(f"{factor}: {100 * right:.2f} % right of {len(checked)} observations {which}")
    return lines


def _columns(chance_NY: Tensor, told: LabelMapping, seen: Observations) -> dict[str, Any]:
    confidence_N, class_N = chance_NY.max(1)
    names = np.array([*told.names(), None], dtype=object)
    columns = {told.factor: names[class_N], f"{told.factor}_confidence": confidence_N.numpy()}
    true_N = None if seen.data is None else true_classes(told, seen.data)
    if seen.data is not None and true_N is not None and (true_N >= 0).any():
        columns[f"{told.factor}_true"] = true_values(told, seen.data) if told.many_to_one else names[true_N]
        if told.many_to_one:  # the name of a class is not what the table says: who is right cannot be seen by comparing
            columns[f"{told.factor}_right"] = np.where(true_N >= 0, class_N.numpy() == true_N, None)
        if seen.trained_on:
            columns[f"{told.factor}_labelled"] = used_in_training(told, len(true_N))
    return columns


# --- what is to be classified --------------------------------------------------------------------------------------


def _observations(trained: TrainedModel, data: Any) -> Observations:
    if _are_pictures(data):
        return _pictures(trained, data)
    dataset, trained_on = compatible_data(trained, data)
    files = dataset.source_info.file_names
    names: list[Any] = list(files) or list(range(dataset.size))
    column = "file" if files else "row"
    return Observations(column, names, lambda: image_batches(trained, dataset), dataset, trained_on)


def _are_pictures(data: Any) -> bool:
    """Whether this names picture files or folders of them, and is no data set."""
    if isinstance(data, list | tuple):
        return bool(data) and all(isinstance(item, str | Path) for item in data)
    if not isinstance(data, str | Path) or data in DATASETS:  # a folder of such a name is './digits'
        return False
    return Path(data).is_dir() or Path(data).suffix.lower() in SUFFIXES


def _pictures(trained: TrainedModel, paths: Pictures) -> Observations:
    files = image_files(paths)
    device = next(trained.method.parameters()).device

    def images() -> Iterator[Tensor]:
        for start in range(0, len(files), BATCH):
            pixels = np.stack([_read(trained, file) for file in files[start : start + BATCH]])
            yield torch.as_tensor(pixels, dtype=torch.float32, device=device)

    return Observations("file", [str(file) for file in files], images, None, False)


def _read(trained: TrainedModel, file: Path) -> np.ndarray:
    """A picture as those the model was trained on, if these were pictures too."""
    like = read_image_like(trained.data, file)
    return read_image(file, trained.data.shape) if like is None else like


def _factors(frame: pd.DataFrame) -> list[str]:
    """The factors in a table of predictions."""
    return [str(name) for name in frame if f"{name}_confidence" in frame]


def _checked(frame: pd.DataFrame, factor: str, used: bool = False) -> pd.DataFrame:
    """The rows whose true class is known, and was used in training or was not."""
    if f"{factor}_true" not in frame:
        return frame[:0]
    known = frame[f"{factor}_right" if f"{factor}_right" in frame else f"{factor}_true"].notna()
    labelled = frame.get(f"{factor}_labelled", False)
    return frame[known & (labelled == used)]


__all__ = ["accuracy_lines", "class_error", "label_mappings", "predict"]
