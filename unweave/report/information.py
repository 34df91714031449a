"""What each latent encodes: information about factors, order of importance, membership in parts.

Shape letters: Z latents, K factors.
"""

import numpy as np

from unweave.evaluation.evaluate import Evaluation
from unweave.model import TrainedModel
from unweave.report.formatting import pretty

PARTIAL_THRESHOLD = 0.15  # share of a factor's entropy from which a latent encodes it in part


def adjusted_information(result: Evaluation) -> np.ndarray:
    """Return the information of each latent about each factor as a share of its entropy [Z, K], adjusted for chance.

    Adjusted as in Vinh et al. 2010: the estimate for uninformative codes is 0, all of the entropy is 1. Values
    that are not larger than those about shuffled factors are 0. The share of a constant factor is 0.
    """
    if result.chance is None or result.luck is None:
        return _share(result.information, np.broadcast_to(result.entropies, result.information.shape))
    above_ZK = result.information - result.chance
    return np.where(above_ZK > result.luck, _share(above_ZK, result.entropies - result.chance), 0.0)


def _share(known_ZK: np.ndarray, whole_ZK: np.ndarray) -> np.ndarray:
    share_ZK = np.divide(known_ZK, whole_ZK, out=np.zeros_like(known_ZK), where=whole_ZK > 1e-9)
    return np.clip(np.nan_to_num(share_ZK), 0.0, 1.0)


def latent_order(result: Evaluation) -> list[int]:
    """Return the latents, most informative first: by nats, or without posteriors by information about factors."""
    nats_Z = result.latent_information
    information_Z = nats_Z if np.isfinite(nats_Z).all() else adjusted_information(result).max(1)
    return np.argsort(-information_Z, kind="stable").tolist()


def coordinate_names(trained: TrainedModel) -> list[tuple[str, bool]]:
    """Return for each latent its part ("" in an undivided code) and whether it is the probability of a class."""
    parts = trained.representation.parts
    named = [(pretty(part.name), part.classes) for part in parts for _ in range(part.size)]
    return named or [("", False)] * trained.representation.latents


def latent_shares(trained: TrainedModel, result: Evaluation) -> np.ndarray:
    """Return the adjusted information [Z, K] with 0 for probabilities of classes."""
    is_class_Z = np.array([is_class for _, is_class in coordinate_names(trained)])
    return np.where(is_class_Z[:, None], 0.0, adjusted_information(result))
