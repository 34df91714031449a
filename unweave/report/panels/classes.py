"""Models that know classes: images drawn class by class, analogies, and how often the class is told right.

Shape letters: N observations, B images, V classes, Z latents.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from unweave.contract import Part
from unweave.data.dataset import data_device
from unweave.data.supervision.label_mapping import label_mappings, labelled_set
from unweave.data.supervision.labels import LabelledSet
from unweave.data.supervision.parse import read_supervision
from unweave.data.supervision.specs import Labels
from unweave.evaluation.groups import ContentLeakage, content_leakage
from unweave.model import TrainedModel
from unweave.report.images import image_grid, sample_images
from unweave.report.panels.swaps import follow, recoded
from unweave.report.words import percent, pretty

ROWS = 3000  # observations whose class is told
MOST_ROWS, MOST_COLUMNS = 16, 20  # classes that are shown
_CHUNK = 512


class ClassPart(NamedTuple):
    """Where in the code the probabilities of one factor's classes stand."""

    title: str  # the factor, or the part
    start: int
    names: list[str]  # of the classes


def class_parts(trained: TrainedModel) -> list[ClassPart]:
    """The parts of the code that are classes, with the names of the labelled factors where those fit."""
    found: list[ClassPart] = []
    start, labels, parts = 0, label_names(trained), trained.representation.parts
    order = _label_of(parts, [len(names) for _, names in labels])
    for part in parts:
        if part.classes:
            label = order[len(found)]
            title, names = (pretty(part.name), _numbers(part)) if label is None else labels[label]
            found.append(ClassPart(title, start, names))
        start += part.size
    return found


def _label_of(parts: Sequence[Part], sizes: list[int]) -> list[int | None]:
    """Which label each class part is; as they come where the parts do not say it and all of them fit."""
    classes = [part for part in parts if part.classes]
    if any(part.label is not None for part in classes):
        return [part.label for part in classes]
    fit = [part.size for part in classes] == sizes
    return [number if fit else None for number in range(len(classes))]


def _numbers(part: Part) -> list[str]:
    return [str(v) for v in range(part.size)]


def label_names(trained: TrainedModel) -> list[tuple[str, list[str]]]:
    """Each labelled factor and what the classes that the method was told are called."""
    used = _used(trained)
    return [] if used is None else [(pretty(told.factor), told.names()) for told in label_mappings(used)]


def _used(trained: TrainedModel) -> LabelledSet | None:
    return labelled_set(trained.data, trained.config.supervision, trained.config.seed)


# --- pictures ------------------------------------------------------------------------------------------------------


def one_hot(code_BZ: np.ndarray, part: ClassPart, class_B: np.ndarray) -> np.ndarray:
    """The codes with this part set to these classes."""
    found = code_BZ.copy()
    found[:, part.start : part.start + len(part.names)] = np.eye(len(part.names))[class_B]
    return found


def drawn_codes(trained: TrainedModel, count: int, seed: int) -> np.ndarray:
    """Codes drawn by the seed: standard normal style, every class part one of its classes [B, Z]."""
    random = np.random.default_rng(seed)
    codes = random.standard_normal((count, trained.representation.latents))
    for part in class_parts(trained):
        codes = one_hot(codes, part, random.integers(len(part.names), size=count))
    return codes


def samples(trained: TrainedModel, part: ClassPart, *, across: int = 9, seed: int = 0) -> list[tuple[str, np.ndarray]]:
    """A strip of images for each class; a column is the same style in all of them.

    Where the method learned a prior that depends on the class, that is the same draw, each time from the prior of the
    row's class.
    """
    codes, prior = drawn_codes(trained, across, seed), trained.representation.from_prior
    found = []
    for v, name in enumerate(part.names[:MOST_ROWS]):
        row = recoded(trained, prior, one_hot(codes, part, np.full(across, v)))
        found.append((name, image_grid([list(trained.decode(row))])))
    return found


def analogies(trained: TrainedModel, part: ClassPart, *, down: int = 6, seed: int = 0) -> np.ndarray:
    """Pixels: first the image, then its style with every class; what follows from the class changes with it."""
    images = sample_images(trained, down, seed)
    codes, shown = trained.encode(images), len(part.names[:MOST_COLUMNS])
    changed = [one_hot(codes, part, np.full(len(images), v)) for v in range(shown)]
    columns = [trained.decode(follow(trained, code_BZ)) for code_BZ in changed]
    return image_grid([list(row) for row in zip(images, *columns, strict=True)])


# --- accuracy ------------------------------------------------------------------------------------------------------


class ClassAccuracy(NamedTuple):
    """How well one labelled factor is told."""

    title: str
    names: list[str]
    rows: int
    held_out: bool  # on observations without a label; otherwise all have one
    accuracy: float
    chance: float  # how often it would be right to name always the most frequent class
    confusion_VV: np.ndarray  # of the observations of each class (row) the share told as each class (column)
    leak: ContentLeakage | None  # how well a linear classifier tells the class from the class part and from the rest
    labelled: int = 0  # how many observations it was told of


def class_accuracies(trained: TrainedModel, seed: int) -> list[ClassAccuracy]:
    """How often the method names the class, per labelled factor; [] if it names none or factors are unknown."""
    used, classify = _used(trained), trained.representation.classify
    if used is None or classify is None:
        return []
    index_N, labels_NL, held_out = _unlabelled(trained, seed)
    guesses = map_batches(lambda images: torch.stack([p.argmax(1) for p in classify(images)], 1), trained, index_N)
    codes = map_batches(trained.representation.require("encode"), trained, index_N)
    found = []
    for number, (title, classes) in enumerate(label_names(trained)):
        known = labels_NL[:, number] >= 0
        if known.any():
            truth, guess = labels_NL[known, number], guesses[known, number].astype(np.int64)
            leak = _style_leak(trained, codes[known], truth, seed)
            accuracy = float((truth == guess).mean())
            table = _confusion(truth, guess, len(classes))
            chance = float(np.bincount(truth).max() / len(truth))
            labelled = int((used.table[1][:, number] >= 0).sum())
            found.append(ClassAccuracy(title, classes, len(truth), held_out, accuracy, chance, table, leak, labelled))
    return found


def _unlabelled(trained: TrainedModel, seed: int) -> tuple[Tensor, np.ndarray, bool]:
    """Observations that have no label in this run, what it would be without mistakes, and whether there are any."""
    data, spec = trained.data, read_supervision(trained.config.supervision, trained.data)
    assert isinstance(spec, Labels)
    chosen = torch.tensor(trained.config.seed if spec.seed is None else spec.seed, device=data_device(data))
    labelled = LabelledSet(data, spec, chosen).table[0]
    everything = spec._replace(n=data.size, noise=0.0, balanced=False)
    index_N, labels_NL = LabelledSet(data, everything, chosen).table
    left = torch.isin(index_N, labelled, invert=True)
    held_out = bool(left.any())
    rows = left.nonzero()[:, 0] if held_out else torch.arange(len(index_N), device=left.device)
    order = torch.randperm(len(rows), generator=torch.Generator().manual_seed(seed))[:ROWS].to(rows.device)
    return index_N[rows[order]], labels_NL[rows[order]].cpu().numpy(), held_out


def map_batches(function: Callable[[Tensor], Tensor], trained: TrainedModel, index_N: Tensor) -> np.ndarray:
    """What a function of images gives for these observations."""
    with torch.no_grad():
        found = [function(trained.data.images(part)).float().cpu() for part in index_N.split(_CHUNK)]
    return torch.cat(found).numpy()


def _style_leak(trained: TrainedModel, codes: np.ndarray, truth: np.ndarray, seed: int) -> ContentLeakage | None:
    each = [part for part in trained.representation.parts for _ in range(part.size)]
    is_class = np.array([part.classes for part in each], dtype=bool)
    is_style = np.array([not (part.classes or part.follows) for part in each], dtype=bool)
    counts = np.bincount(truth)
    if not is_class.any() or not is_style.any() or (counts > 0).sum() < 2 or counts.max() < 2:
        return None
    return content_leakage(codes[:, is_class], codes[:, is_style], truth, seed)


def _confusion(truth: np.ndarray, guess: np.ndarray, classes: int) -> np.ndarray:
    counts = np.zeros((classes, classes))
    np.add.at(counts, (truth, guess), 1.0)
    return counts / np.maximum(counts.sum(1, keepdims=True), 1.0)


def confusions(told: ClassAccuracy, most: int = 3) -> str:
    """The mistakes made most often, in words."""
    wrong = told.confusion_VV - np.diag(np.diag(told.confusion_VV))
    order = np.argsort(-wrong, axis=None, kind="stable")[:most]
    pairs = [(int(i) // len(told.names), int(i) % len(told.names)) for i in order]
    said = [f"{told.names[a]} taken for {told.names[b]} ({percent(wrong[a, b])})" for a, b in pairs if wrong[a, b] > 0]
    return f"Most often mistaken: {', '.join(said)}." if said else "No mistake among them."
