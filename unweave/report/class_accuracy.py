"""Accuracy of models that predict classes, and how well clusters match classes.

Shape letters: N observations, V classes, L labels, Y clusters, K factors, Z latents.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from unweave.data.dataset import data_device, without_repetitions
from unweave.data.supervision.label_mapping import label_mappings
from unweave.data.supervision.labelled_set import LabelledSet
from unweave.evaluation.groups import ContentLeakage, content_leakage
from unweave.metrics import cluster_error
from unweave.model import TrainedModel
from unweave.nn.batch_size import images_per_call
from unweave.report.formatting import percent, pretty

MAX_ROWS = 3000  # number of observations that are classified
MAX_ERRORS = 3  # pairs of classes that are named


class ClassPart(NamedTuple):
    """The coordinates of the code that are the probabilities of one factor's classes."""

    title: str  # the factor, or the part
    start: int
    names: list[str]  # of the classes


class ClassAccuracy(NamedTuple):
    """Accuracy for one labelled factor."""

    title: str
    names: list[str]  # of the classes
    rows: int
    held_out: bool  # measured on observations without a label; otherwise all have one
    accuracy: float
    chance: float  # accuracy of the most frequent class
    confusion_VV: np.ndarray  # share of the observations of each class (row) that are assigned each class (column)
    leak: ContentLeakage | None  # accuracy of a linear classifier on the class part and on the rest of the code
    labelled: int = 0  # number of observations with a label in training

    def most_frequent_errors(self) -> str:
        errors_VV = self.confusion_VV - np.diag(np.diag(self.confusion_VV))
        order = np.argsort(-errors_VV, axis=None, kind="stable")[:MAX_ERRORS]
        pairs = [pair for pair in zip(*np.unravel_index(order, errors_VV.shape)) if errors_VV[pair] > 0]
        named = [f"{self.names[t]} taken for {self.names[g]} ({percent(errors_VV[t, g])})" for t, g in pairs]
        return f"Most frequent errors: {', '.join(named)}." if named else "There are no errors."


def class_parts(trained: TrainedModel) -> list[ClassPart]:
    """Return the categorical parts of the code, named after their labels.

    Parts that do not declare a label have the labels in order if all class counts match, or else their own names.
    """
    labels, parts = label_names(trained), trained.representation.parts
    ends = np.cumsum([part.size for part in parts])
    classes = [(int(end) - part.size, part) for end, part in zip(ends, parts, strict=True) if part.classes]
    numbers = [part.label for _, part in classes]
    if set(numbers) == {None} and [part.size for _, part in classes] == [len(names) for _, names in labels]:
        numbers = list(range(len(classes)))
    found = []
    for (start, part), number in zip(classes, numbers, strict=True):
        title, names = (pretty(part.name), list(map(str, range(part.size)))) if number is None else labels[number]
        found.append(ClassPart(title, start, names))
    return found


def label_names(trained: TrainedModel) -> list[tuple[str, list[str]]]:
    """Return each labelled factor with the names of its classes."""
    used = trained.supervision.labelled_set(trained.data, trained.config.seed)
    return [] if used is None else [(pretty(mapping.factor), mapping.names()) for mapping in label_mappings(used)]


def class_accuracies(trained: TrainedModel, seed: int) -> list[ClassAccuracy]:
    """Return the accuracy for each labelled factor; [] without labels or a classifier."""
    used = trained.supervision.labelled_set(trained.data, trained.config.seed)
    classify = trained.representation.classify
    if used is None or classify is None:
        return []
    index_N, labels_NL, held_out = unlabelled(used, seed)
    guesses_NL = map_batches(lambda images: torch.stack([p.argmax(1) for p in classify(images)], 1), trained, index_N)
    codes_NZ = map_batches(trained.representation.require("encode"), trained, index_N)
    found = []
    for number, (title, names) in enumerate(label_names(trained)):
        known = labels_NL[:, number] >= 0
        if known.any():
            truth_N, guess_N = labels_NL[known, number], guesses_NL[known, number].astype(np.int64)
            confusion = np.zeros((len(names), len(names)))
            np.add.at(confusion, (truth_N, guess_N), 1.0)
            found.append(
                ClassAccuracy(
                    title,
                    names,
                    rows=len(truth_N),
                    held_out=held_out,
                    accuracy=float((truth_N == guess_N).mean()),
                    chance=float(np.bincount(truth_N).max() / len(truth_N)),
                    confusion_VV=confusion / np.maximum(confusion.sum(1, keepdims=True), 1.0),
                    leak=_leakage(trained, codes_NZ[known], truth_N, seed),
                    labelled=int((used.table[1][:, number] >= 0).sum()),
                )
            )
    return found


def unlabelled(labelled: LabelledSet, seed: int) -> tuple[Tensor, np.ndarray, bool]:
    """Return random observations without a label, each once, their labels without mistakes, and True.

    If all observations have a label, return random labelled ones and False.
    """
    index_N, labels_NL = labelled.complete().table
    left = ~labelled.is_labelled(index_N)
    held_out = bool(left.any())
    rows = left.nonzero()[:, 0] if held_out else torch.arange(len(index_N), device=left.device)
    rows = rows[torch.isin(index_N[rows], without_repetitions(labelled.data, index_N[rows]))]
    order = torch.randperm(len(rows), generator=torch.Generator().manual_seed(seed))[:MAX_ROWS].to(rows.device)
    return index_N[rows[order]], labels_NL[rows[order]].cpu().numpy(), held_out


def map_batches(function: Callable[[Tensor], Tensor], trained: TrainedModel, index_N: Tensor) -> np.ndarray:
    """Return the values of a function of images for these observations."""
    batch = images_per_call(function, trained.data.shape, index_N.device)
    with torch.no_grad():
        found = [function(trained.data.images(part)).float().cpu() for part in index_N.split(batch)]
    return torch.cat(found).numpy()


def _leakage(trained: TrainedModel, codes_NZ: np.ndarray, truth_N: np.ndarray, seed: int) -> ContentLeakage | None:
    """Return how well the class can be predicted from style; None without style or with too few observations."""
    part_Z = [part for part in trained.representation.parts for _ in range(part.size)]
    is_class = np.array([part.classes for part in part_Z], dtype=bool)
    is_style = np.array([not (part.classes or part.follows) for part in part_Z], dtype=bool)
    counts = np.bincount(truth_N)
    if not is_class.any() or not is_style.any() or (counts > 0).sum() < 2 or counts.max() < 2:
        return None
    return content_leakage(codes_NZ[:, is_class], codes_NZ[:, is_style], truth_N, seed)


class ClusterMatch(NamedTuple):
    """How well clusters match the classes of one factor."""

    title: str
    factors: int  # number of factors with classes, of which this one is matched best
    clusters: int
    used: int  # clusters that are the most probable one of some observation
    rows: int  # observations without those that name a cluster
    error: float
    chance: float  # error of the most frequent class


def match_clusters(trained: TrainedModel, seed: int) -> ClusterMatch | None:
    """Return the match with the best factor, relative to chance; None without clusters or factors with classes."""
    data, cluster = trained.data, trained.representation.cluster
    discrete = [k for k, kind in enumerate(data.factor_types) if kind == "discrete" and data.factor_sizes[k] > 1]
    if cluster is None or not discrete:
        return None
    order = torch.randperm(data.size, generator=torch.Generator().manual_seed(seed))[:MAX_ROWS]
    index_N = order.to(data_device(data))
    probability_NY, class_NK = map_batches(cluster, trained, index_N), data.factors(index_N).cpu().numpy()
    matches = [_match(data.factor_names[k], probability_NY, class_NK[:, k]) for k in discrete]
    known = [match for match in matches if match is not None]
    best = min(known, key=lambda match: match.error / match.chance, default=None)
    return best and best._replace(factors=len(known))


def _match(name: str, probability_NY: np.ndarray, class_N: np.ndarray) -> ClusterMatch | None:
    """Return the match with one factor; None if too few observations have a class, or all have the same one."""
    clusters, used, known_N = probability_NY.shape[1], len(np.unique(probability_NY.argmax(1))), class_N >= 0
    counts = np.bincount(class_N[known_N], minlength=1)
    if known_N.sum() <= clusters or (counts > 0).sum() < 2:
        return None
    error = cluster_error(probability_NY[known_N], class_N[known_N])
    rows = int(known_N.sum()) - len(np.unique(probability_NY[known_N].argmax(0)))
    return ClusterMatch(pretty(name), 1, clusters, used, rows, error, 1 - float(counts.max() / counts.sum()))
