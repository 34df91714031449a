"""How well the clusters of a model match the classes of the data, which training did not use.

Shape letters: N observations, Y clusters, K factors.
"""

from typing import NamedTuple

import numpy as np
import torch

from unweave.data.dataset import data_device
from unweave.metrics import cluster_error
from unweave.model import TrainedModel
from unweave.report.class_accuracy import MAX_ROWS, map_batches
from unweave.report.formatting import pretty


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
