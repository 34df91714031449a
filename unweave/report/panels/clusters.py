"""Models that find clusters: how well these match the classes that the data has and nobody told.

Shape letters: N observations, Y clusters, K factors.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch

from unweave.data.dataset import data_device
from unweave.metrics import cluster_error
from unweave.model import TrainedModel
from unweave.report.panels.classes import ROWS, map_batches
from unweave.report.words import pretty


class ClusterMatch(NamedTuple):
    """How well clusters that nobody named match the classes of one factor."""

    title: str
    factors: int  # how many have classes; this one is matched best
    clusters: int
    used: int  # clusters that are the likeliest of some observation
    rows: int  # observations that count: those that do not name a cluster
    error: float
    chance: float  # the share wrong if all were said to be of the most frequent class


def match_clusters(trained: TrainedModel, seed: int) -> ClusterMatch | None:
    """The factor with classes that the clusters match best, against naming always its most frequent class.

    None if the method has no clusters or the data no such factor.
    """
    data, cluster = trained.data, trained.representation.cluster
    named = [k for k, kind in enumerate(data.factor_types) if kind == "discrete" and data.factor_sizes[k] > 1]
    if cluster is None or not named:
        return None
    order = torch.randperm(data.size, generator=torch.Generator().manual_seed(seed))[:ROWS]
    index_N = order.to(data_device(data))
    chance_NY, class_NK = map_batches(cluster, trained, index_N), data.factors(index_N).cpu().numpy()
    found = [one for k in named if (one := _clustered(data.factor_names[k], chance_NY, class_NK[:, k])) is not None]
    best = min(found, key=lambda one: one.error / one.chance, default=None)
    return best and best._replace(factors=len(found))


def _clustered(name: str, chance_NY: np.ndarray, class_N: np.ndarray) -> ClusterMatch | None:
    """The clusters beside one factor; None if too few observations have a class, or all have the same one."""
    clusters, used, known_N = chance_NY.shape[1], len(np.unique(chance_NY.argmax(1))), class_N >= 0
    counts = np.bincount(class_N[known_N], minlength=1)
    if known_N.sum() <= clusters or (counts > 0).sum() < 2:
        return None
    error = cluster_error(chance_NY[known_N], class_N[known_N])
    rows = int(known_N.sum()) - len(np.unique(chance_NY[known_N].argmax(0)))
    return ClusterMatch(pretty(name), 1, clusters, used, rows, error, 1 - float(counts.max() / counts.sum()))
