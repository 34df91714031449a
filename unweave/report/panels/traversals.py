"""Which latent encodes which factor, in sentences, and traversals of all latents."""

from __future__ import annotations

from typing import Any

import numpy as np

from unweave.evaluation.evaluate import Evaluation
from unweave.report.formatting import join_words, percent, pretty
from unweave.report.information import PARTIAL_THRESHOLD, latent_shares
from unweave.report.panel import Panel
from unweave.report.traversals import MAX_LATENTS
from unweave.report.views import RunView

FULL_THRESHOLD = 0.4  # share of a factor's entropy from which a latent encodes it
MAX_NAMED = 6  # latents that a sentence names


def context(run: RunView) -> dict[str, Any]:
    active = [row for row in run.latents if row["active"]]
    return {
        "findings": findings(run.result, latent_shares(run.trained, run.result)),
        "latents": run.latents,
        "active": active[:MAX_LATENTS],
        "collapsed": active[MAX_LATENTS:],
        "inactive": [row for row in run.latents if not row["active"]],
        "starts": run.starts,
        "above": run.several and run.starts == 1 and run.active[0] > 0,
    }


def findings(result: Evaluation, shares_ZK: np.ndarray) -> list[str]:
    """Return sentences that say which latent encodes which factor."""
    best_K, known_K = shares_ZK.argmax(0), shares_ZK.max(0)
    groups: dict[str, list[str]] = {"Encoded by one latent": [], "Partly encoded": [], "Not encoded by one latent": []}
    full, partial, none = groups.values()
    for k in np.argsort(-known_K, kind="stable"):
        name = pretty(result.factor_names[k])
        encoded = f"{name} in z{best_K[k]} ({percent(float(known_K[k]))})"
        if known_K[k] >= FULL_THRESHOLD:
            full.append(encoded)
        elif known_K[k] >= PARTIAL_THRESHOLD:
            partial.append(encoded)
        else:
            none.append(name)
    sentences = [f"{words}: {join_words(group)}." for words, group in groups.items() if group]
    return sentences + _split(result, shares_ZK) + _mixed(result, best_K, known_K)


def _split(result: Evaluation, shares_ZK: np.ndarray) -> list[str]:
    """Name the factors that a second latent knows at least half as well as the first."""
    sentences = []
    for k, name in enumerate(result.factor_names):
        latents = np.flatnonzero(shares_ZK[:, k] >= max(PARTIAL_THRESHOLD, shares_ZK[:, k].max() / 2))
        if len(latents) > 1:
            named = [f"z{z}" for z in latents]
            if len(latents) > MAX_NAMED:
                best = latents[np.argsort(-shares_ZK[latents, k], kind="stable")][: MAX_NAMED - 1]
                named = [*(f"z{z}" for z in best), f"{len(latents) - len(best)} others"]
            sentences.append(f"{pretty(name)} is split between {join_words(named)}.")
    return sentences


def _mixed(result: Evaluation, best_K: np.ndarray, known_K: np.ndarray) -> list[str]:
    """Name the latents that know several factors best."""
    sentences = []
    for z in sorted(set(best_K.tolist())):
        held = np.flatnonzero((best_K == z) & (known_K >= PARTIAL_THRESHOLD))
        if len(held) > 1:
            sentences.append(f"z{z} mixes {join_words([pretty(result.factor_names[k]) for k in held])}.")
    return sentences


PANEL = Panel("traversals", "Latent traversals", "run", context)
