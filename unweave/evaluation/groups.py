"""Accuracy of predicting the class of a group from content and from style.

A good model of groups allows predicting the class from the content but not from the style. With several members, their
contents are combined before the class is predicted (evidence accumulation).

Shape letters: N observations, M members of a group, D codes, Z latents.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from unweave.contract import Part
from unweave.data import Dataset
from unweave.data.dataset import data_device, without_repetitions
from unweave.data.supervision.parse import parse_supervision
from unweave.errors import invalid, renamed_arguments
from unweave.evaluation.codes import sample_indices
from unweave.metrics.inputs import Floats, Indices, array_error
from unweave.metrics.solvers.linear import class_scores, fit_logistic, standardize
from unweave.model import TrainedModel
from unweave.nn.batch_size import images_per_call

TRAIN_SHARE = 2 / 3  # of the observations of each class; the others are test observations
MAX_CLASSES = 500  # a linear classifier of more takes minutes
_CHUNK = 512  # images in one call of the encoder, if they fit into memory


class ContentLeakage(NamedTuple):
    """Test accuracies of predicting the class."""

    content: float
    style: float
    chance: float  # always predicting the most frequent class


class GroupAccuracy(NamedTuple):
    """Test accuracies of predicting the class of a group from the content of its members and from the style."""

    content: dict[int, float]  # by the number of members
    style: float  # of one observation
    chance: float
    classes: int
    rows: int  # training and test observations


def content_style_slices(parts: Sequence[Part]) -> tuple[slice, slice]:
    """Return the coordinates of the first part and those of all others."""
    total = sum(part.size for part in parts)
    if len(parts) < 2:
        raise invalid("parts", [part.name for part in parts], "at least two, such as content and style")
    return slice(0, parts[0].size), slice(parts[0].size, total)


def content_leakage(codes_content: Any, codes_style: Any, classes: Any, seed: int = 0) -> ContentLeakage:
    """Return the accuracy of linear classifiers of the class from content codes [N, D] and from style codes [N, D'].

    They are trained on a random two thirds of the observations of each class and tested on the others.
    """
    labels_N = np.unique(np.asarray(classes), return_inverse=True)[1].reshape(-1).astype(np.int64)
    both = [np.asarray(codes, dtype=np.float64) for codes in (codes_content, codes_style)]
    for name, codes in zip(("codes_content", "codes_style"), both, strict=True):
        if codes.ndim != 2 or len(codes) != len(labels_N):
            raise array_error(name, f"shape {codes.shape}", f"an array [rows, codes] of {len(labels_N)} rows")
    train_N = train_rows(labels_N, seed)
    content, style = (_accuracy(codes, labels_N, train_N) for codes in both)
    return ContentLeakage(content, style, _chance(labels_N, train_N))


class _Rows(NamedTuple):
    """Observations of one or two data sets, with their classes."""

    sets: tuple[Dataset, ...]
    origin_N: np.ndarray  # index of the data set
    index_N: np.ndarray  # index of the observation in it
    labels_N: Indices
    train_N: np.ndarray  # True for training observations


@renamed_arguments(rows="num_samples")
def group_accuracy(
    run: TrainedModel,
    data: Dataset | None = None,
    *,
    test: Dataset | None = None,
    members: Sequence[int] = (1, 2, 4),
    num_samples: int = 3000,
    seed: int = 0,
) -> GroupAccuracy:
    """Return the accuracy of predicting the class of a group from codes of `num_samples` observations of `data`.

    `data` defaults to the data of the run. Two thirds of the observations are for training; with `test`, all of them
    are, and as many observations of `test` are the test observations. For `members` above 1, `encode_group` of the
    method combines the content of observations of the same class, but not of training and test observations. Numbers of
    members that exceed the size of a class are left out.
    """
    rows = _sample_rows(run, run.data if data is None else data, test, num_samples, seed)
    representation = run.representation
    content, style = content_style_slices(representation.parts)
    single_NZ = _encode_first(representation.require("encode"), rows, np.arange(len(rows.labels_N))[:, None])
    accuracies = {1: _accuracy(single_NZ[:, content], rows.labels_N, rows.train_N)} if 1 in members else {}
    for count in [m for m in members if m > 1 and representation.encode_group is not None]:
        groups_NM = group_rows(rows.labels_N, rows.train_N, count, seed)
        if groups_NM is not None:
            joined_NZ = _encode_first(representation.require("encode_group"), rows, groups_NM)
            accuracies[count] = _accuracy(joined_NZ[:, content], rows.labels_N, rows.train_N)
    style_accuracy = _accuracy(single_NZ[:, style], rows.labels_N, rows.train_N)
    chance = _chance(rows.labels_N, rows.train_N)
    return GroupAccuracy(accuracies, style_accuracy, chance, int(rows.labels_N.max()) + 1, len(rows.labels_N))


def _sample_rows(run: TrainedModel, data: Dataset, test: Dataset | None, num_samples: int, seed: int) -> _Rows:
    sets = (data,) if test is None else (data, test)
    drawn = [_sample_classes(one, run.config.supervision, num_samples, seed) for one in sets]
    keys = np.concatenate([key for _, key in drawn])
    labels_N = np.unique(keys, axis=0, return_inverse=True)[1].reshape(-1).astype(np.int64)
    count = int(labels_N.max(initial=-1)) + 1
    if not 2 <= count <= MAX_CLASSES:
        raise invalid("data", f"{count} classes of groups", f"a data set with 2 to {MAX_CLASSES} classes of groups")
    origin_N = np.repeat(np.arange(len(sets)), [len(index) for index, _ in drawn])
    train_N = train_rows(labels_N, seed) if test is None else origin_N == 0
    return _Rows(sets, origin_N, np.concatenate([index for index, _ in drawn]), labels_N, train_N)


def _sample_classes(data: Dataset, supervision: str, num_samples: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return random observations and the factors that groups share; observations with unknown values are left out."""
    by = parse_supervision(supervision, data).shared
    if not by:
        raise invalid("supervision", supervision, "groups(by=[...]), or another kind that shares factors")
    index_N = without_repetitions(data, sample_indices(data, num_samples, seed))
    classes_NK = data.factors(index_N)[:, list(by)].cpu().numpy()
    known_N = (classes_NK >= 0).all(1)
    return index_N.cpu().numpy()[known_N], classes_NK[known_N]


def _ranks(key_N: Indices, seed: int) -> tuple[Indices, Indices]:
    """Return the rank of each row among the rows with its key, in random order, and the number of these rows."""
    order = np.lexsort((np.random.default_rng(seed).permutation(len(key_N)), key_N))
    counts = np.bincount(key_N)
    starts = counts.cumsum() - counts
    rank_N = np.empty(len(key_N), dtype=np.int64)
    rank_N[order] = np.arange(len(key_N)) - starts[key_N[order]]
    return rank_N, counts[key_N]


def train_rows(labels_N: Indices, seed: int) -> np.ndarray:
    """Return which rows are training rows, two thirds of each class [N]."""
    rank_N, count_N = _ranks(labels_N, seed)
    train_N = rank_N < np.maximum(1, np.floor(TRAIN_SHARE * count_N))
    if train_N.all():
        raise array_error("classes", "one observation per class", "an array with two observations of a class")
    return train_N


def group_rows(labels_N: Indices, train_N: np.ndarray, count: int, seed: int) -> np.ndarray | None:
    """Return groups of `count` rows of the same class and split, the row itself first [N, M]; None if too few."""
    key_N = 2 * labels_N + train_N
    rank_N, size_N = _ranks(key_N, seed)
    if size_N.min() < count:
        return None
    table = np.zeros((key_N.max() + 1, size_N.max()), dtype=np.int64)
    table[key_N, rank_N] = np.arange(len(key_N))
    return np.stack([table[key_N, (rank_N + step) % size_N] for step in range(count)], axis=1)


def _encode_first(encode: Callable[[Tensor], Tensor], rows: _Rows, groups_NM: np.ndarray) -> Floats:
    """Return the code of the first member of each group of rows [N, Z]; one member is encoded as a single image."""
    found, order, members = [], np.argsort(rows.origin_N, kind="stable"), groups_NM.shape[1]
    with torch.no_grad():
        for number, data in enumerate(rows.sets):
            device = data_device(data)
            index_NM = torch.from_numpy(rows.index_N[groups_NM[rows.origin_N == number]]).to(device)
            shape = data.shape if members == 1 else (members, *data.shape)
            for part_BM in index_NM.split(images_per_call(encode, shape, device, most=max(1, _CHUNK // members))):
                images = data.images(part_BM.flatten())
                codes = encode(images) if members == 1 else encode(images.unflatten(0, part_BM.shape))[:, 0]
                found.append(codes.float().cpu())
    codes_NZ = torch.cat(found).double().numpy()
    return codes_NZ[np.argsort(order)]


def _accuracy(codes_ND: Floats, labels_N: Indices, train_N: np.ndarray) -> float:
    train_ND, test_ND = standardize(codes_ND[train_N], codes_ND[~train_N])
    weights = fit_logistic(train_ND, labels_N[train_N], int(labels_N.max()) + 1)
    return float((class_scores(weights, test_ND).argmax(1) == labels_N[~train_N]).mean())


def _chance(labels_N: Indices, train_N: np.ndarray) -> float:
    return float((labels_N[~train_N] == np.bincount(labels_N[train_N]).argmax()).mean())
