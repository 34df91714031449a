"""Which latent encodes which factor, in sentences, and traversals of all latents."""

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
    sentences = findings(run.result, latent_shares(run.trained, run.result))
    return {"findings": sentences, "most": MAX_LATENTS, "above": run.several and run.starts == 1 and run.active[0] > 0}


def findings(result: Evaluation, shares_ZK: np.ndarray) -> list[str]:
    """Return sentences that say which latent encodes which factor."""
    best_K, known_K = shares_ZK.argmax(0), shares_ZK.max(0)
    groups: dict[str, list[str]] = {"Encoded by one latent": [], "Partly encoded": [], "Not encoded by one latent": []}
    full, partial, none = groups.values()
    for k in np.argsort(-known_K, kind="stable"):
        name, share = pretty(result.factor_names[k]), float(known_K[k])
        if share < PARTIAL_THRESHOLD:
            none.append(name)
        else:
            (full if share >= FULL_THRESHOLD else partial).append(f"{name} in z{best_K[k]} ({percent(share)})")
    sentences = [f"{words}: {join_words(group)}." for words, group in groups.items() if group]
    return sentences + _split(result, shares_ZK) + _mixed(result, best_K, known_K)


def _split(result: Evaluation, shares_ZK: np.ndarray) -> list[str]:
    """Name the factors about which a second latent has at least half as much information as the first."""
    sentences = []
    for k, name in enumerate(result.factor_names):
        latents = np.flatnonzero(shares_ZK[:, k] >= max(PARTIAL_THRESHOLD, shares_ZK[:, k].max() / 2))
        named = [f"z{z}" for z in latents]
        if len(latents) > MAX_NAMED:
            best = latents[np.argsort(-shares_ZK[latents, k], kind="stable")][: MAX_NAMED - 1]
            named = [*(f"z{z}" for z in best), f"{len(latents) - len(best)} others"]
        sentences += [f"{pretty(name)} is split between {join_words(named)}."] if len(latents) > 1 else []
    return sentences


def _mixed(result: Evaluation, best_K: np.ndarray, known_K: np.ndarray) -> list[str]:
    """Name the latents that are the best one for several factors."""
    held_Z = {z: np.flatnonzero((best_K == z) & (known_K >= PARTIAL_THRESHOLD)) for z in sorted(set(best_K.tolist()))}
    names = {z: [pretty(result.factor_names[k]) for k in held] for z, held in held_Z.items() if len(held) > 1}
    return [f"z{z} mixes {join_words(factors)}." for z, factors in names.items()]


PANEL = Panel("traversals", "Latent traversals", "run", context)
