"""The list of metrics: functions of `codes` [N, D] and `factors` [N, K], never of a model.

Adding one is a function in its family's file, an entry here and a page in docs/metrics.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from unweave.metrics.information import mig_score
from unweave.metrics.votes import factor_vae_score


class Metric(NamedTuple):
    """A score and what it means to somebody who has never met it."""

    function: Callable[..., float]  # (codes, factors, *, options) -> float
    title: str
    low: float  # the worst value
    high: float  # the best value
    sentence: str


METRICS: dict[str, Metric] = {
    "mig": Metric(
        mig_score,
        "Mutual information gap (MIG)",
        0.0,
        1.0,
        "How much more one latent knows about each factor than any other latent does; 1 is perfect, 0 is none.",
    ),
    "factor_vae": Metric(
        factor_vae_score,
        "FactorVAE score",
        0.0,
        1.0,
        "How often the latent that stays still while one factor is held fixed tells which factor that was; "
        "1 is always, and guessing gets 1 divided by the number of factors.",
    ),
}

__all__ = ["METRICS", "Metric", "factor_vae_score", "mig_score"]
