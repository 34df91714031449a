"""Mutual information of latents and factors as a table."""

from typing import Any

from unweave.report.information import PARTIAL_THRESHOLD, coordinate_names, latent_order, latent_shares
from unweave.report.panel import Panel
from unweave.report.views import RunView


def context(run: RunView) -> dict[str, Any]:
    result, share_ZK = run.result, latent_shares(run.trained, run.result)
    best_K, known_K = share_ZK.argmax(0), share_ZK.max(0)
    best = {(best_K[k], k) for k in range(len(best_K)) if known_K[k] >= PARTIAL_THRESHOLD and result.active[best_K[k]]}
    known = [result.rows] if result.known is None or not len(result.known) else result.known.tolist()
    least, most = min(known), max(known)
    return {
        "rows": [z for z in latent_order(result) if not coordinate_names(run.trained)[z][1]],
        "shares": share_ZK.tolist(),
        "best": best,
        "images": f"{least:,}" if least == most else f"{least:,} to {most:,}",
    }


PANEL = Panel("information", "Mutual information of latents and factors", "run", context, needs=("factors",))
