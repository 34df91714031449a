"""Mutual information of latents and factors as a table."""

from __future__ import annotations

from typing import Any

from unweave.report.formatting import pretty
from unweave.report.information import PARTIAL_THRESHOLD, coordinate_names, latent_order, latent_shares
from unweave.report.panel import Panel
from unweave.report.views import RunView


def context(run: RunView) -> dict[str, Any]:
    result, named = run.result, coordinate_names(run.trained)
    share_ZK = latent_shares(run.trained, result)
    best_K = share_ZK.argmax(0)
    rows = [
        {
            "name": f"z{z}",
            "active": bool(result.active[z]),
            "cells": [
                (float(share), bool(best_K[k] == z and share >= PARTIAL_THRESHOLD and result.active[z]))
                for k, share in enumerate(share_ZK[z])
            ],
        }
        for z in latent_order(result)
        if not named[z][1]
    ]
    known = [result.rows] if result.known is None or not len(result.known) else result.known.tolist()
    least, most = min(known), max(known)
    images = f"{least:,}" if least == most else f"{least:,} to {most:,}"
    return {"factors": [pretty(name) for name in result.factor_names], "rows": rows, "images": images}


PANEL = Panel("information", "Mutual information of latents and factors", "run", context, needs=("factors",))
