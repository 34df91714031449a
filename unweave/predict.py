"""Classes of observations by a model that learned them from labels: their names, how sure it is, how often it is right.

Shape letters: N observations, Y classes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from unweave.contract import UserError
from unweave.data import DATASETS, Dataset, Sampler, load_data
from unweave.data.folder import read_like
from unweave.data.labelling import LabelledSet
from unweave.data.table import shown
from unweave.encoding import chosen_rows
from unweave.evaluate import Trained, load
from unweave.export import SUFFIXES, image_files, read_image

_BATCH = 512
Pictures = str | Path | Sequence[str | Path]


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


class Observations(NamedTuple):
    """What is to be classified: images in batches, what each is called, and the data set if there is one."""

    column: str  # "file" or "row"
    names: list[Any]
    images: Callable[[], Iterator[Tensor]]
    data: Dataset | None
    trained_on: bool  # the very data of the run


def predict(run: str | Path | Trained, data: Any = None, *, device: str = "cpu") -> pd.DataFrame:
    """A row for every observation: its file or number, the most probable class by name, and the probability.

    `data` is a data set, its name or call text, picture files or folders of them; None is what the run was trained on.
    For each factor F the columns are F and F_confidence; F_true where a true class is known to the data;
    and, of the run's own data, F_labelled: whether its label was used in training.
    """
    trained = load(run, device=device) if isinstance(run, str | Path) else run
    classify = trained.representation.classify
    if classify is None:
        raise UserError(f"method '{trained.config['method']}' has no classes to predict; train one such as m2")
    seen, told = _observations(trained, data), told_factors(trained)
    with torch.no_grad():
        batches = [[part.float().cpu() for part in classify(images)] for images in seen.images()]
    table: dict[str, Any] = {seen.column: seen.names}
    for number, factor in enumerate(told):
        table |= _columns(torch.cat([batch[number] for batch in batches]), factor, seen)
    return pd.DataFrame(table)


def class_error(run: str | Path | Trained, data: Any = None, *, device: str = "cpu") -> dict[str, float]:
    """Of each factor the share of wrong classes, among observations with a known one that was not used in training."""
    frame = predict(run, data, device=device)
    found = {}
    for factor in _factors(frame):
        checked = _checked(frame, factor)
        if not len(checked):
            raise UserError(f"data has no known {factor} beside the labels used in training; give data that has")
        found[factor] = float((checked[factor] != checked[f"{factor}_true"]).mean())
    return found


def accuracy_lines(frame: pd.DataFrame) -> list[str]:
    """How often each factor is right, apart for observations whose label was used in training."""
    lines = []
    for factor in _factors(frame):
        for used in (False, True):
            checked = _checked(frame, factor, used)
            if len(checked):
                right = (checked[factor] == checked[f"{factor}_true"]).mean()
                which = "labelled in training" if used else "with a known class, not labelled in training"
                lines.append(f"{factor}: {100 * right:.2f} % right of {len(checked)} observations {which}")
    return lines


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


def _columns(chance_NY: Tensor, told: Told, seen: Observations) -> dict[str, Any]:
    confidence_N, class_N = chance_NY.max(1)
    names = np.array([*told.names(), None], dtype=object)
    columns = {told.factor: names[class_N], f"{told.factor}_confidence": confidence_N.numpy()}
    true_N = _true_classes(told, seen)
    if true_N is not None and (true_N >= 0).any():
        columns[f"{told.factor}_true"] = names[true_N]
        if seen.trained_on:
            columns[f"{told.factor}_labelled"] = np.isin(np.arange(len(true_N)), list(told.known))
    return columns


def _true_classes(told: Told, seen: Observations) -> np.ndarray | None:
    """The model's number of the true class of each observation; -1 where it is not known."""
    if seen.data is None or told.factor not in seen.data.factor_names:
        return None
    k = seen.data.factor_names.index(told.factor)
    numbers = np.array([*(told.classes.get(value, -1) for value in seen.data.factor_values[k]), -1])
    return numbers[seen.data.factors(chosen_rows(seen.data, None, 0))[:, k].cpu().numpy()]


# --- what is to be classified --------------------------------------------------------------------------------------


def _observations(trained: Trained, data: Any) -> Observations:
    if _are_pictures(data):
        return _pictures(trained, data)
    dataset = trained.data if data is None else load_data(data)
    if dataset.shape != trained.data.shape:
        raise UserError(
            f"data has images of shape {dataset.shape}, but the model takes {trained.data.shape}; give those"
        )
    device = next(trained.method.parameters()).device
    dataset = dataset.to(device)
    files = getattr(getattr(getattr(dataset, "about", None), "found", None), "pictures", None)
    same = bool(dataset.options) and (dataset.name, dataset.options) == (trained.data.name, trained.data.options)

    def images() -> Iterator[Tensor]:
        for part in chosen_rows(dataset, None, 0).split(_BATCH):
            yield dataset.images(part).to(device)

    names = list(files) if files else list(range(dataset.size))
    return Observations("file" if files else "row", names, images, dataset, dataset is trained.data or same)


def _are_pictures(data: Any) -> bool:
    """Whether this names picture files or folders of them, and is no data set."""
    if isinstance(data, list | tuple):
        return bool(data) and all(isinstance(item, str | Path) for item in data)
    if not isinstance(data, str | Path) or data in DATASETS:  # a folder of such a name is './digits'
        return False
    return Path(data).is_dir() or Path(data).suffix.lower() in SUFFIXES


def _pictures(trained: Trained, paths: Pictures) -> Observations:
    files = image_files(paths)
    device = next(trained.method.parameters()).device

    def images() -> Iterator[Tensor]:
        for start in range(0, len(files), _BATCH):
            pixels = np.stack([_read(trained, file) for file in files[start : start + _BATCH]])
            yield torch.as_tensor(pixels, dtype=torch.float32, device=device)

    return Observations("file", [str(file) for file in files], images, None, False)


def _read(trained: Trained, file: Path) -> np.ndarray:
    """A picture as those the model was trained on, if these were pictures too."""
    like = read_like(trained.data, file)
    return read_image(file, trained.data.shape) if like is None else like


def _name(value: float | str) -> str:
    return value if isinstance(value, str) else shown(value)


def _factors(frame: pd.DataFrame) -> list[str]:
    """The factors in a table of predictions."""
    return [str(name) for name in frame if f"{name}_confidence" in frame]


def _checked(frame: pd.DataFrame, factor: str, used: bool = False) -> pd.DataFrame:
    """The rows whose true class is known, and was used in training or was not."""
    if f"{factor}_true" not in frame:
        return frame[:0]
    known = frame[f"{factor}_true"].notna()
    labelled = frame.get(f"{factor}_labelled", pd.Series(False, index=frame.index))
    return frame[known & (labelled == used)]
