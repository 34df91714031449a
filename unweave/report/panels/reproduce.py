"""The command that trains a run again, and all its settings."""

from __future__ import annotations

import json
from typing import Any

from unweave.methods import METHODS
from unweave.report.formatting import method_about
from unweave.report.panel import Panel
from unweave.report.views import RunView


def context(run: RunView) -> dict[str, Any]:
    config, method = run.trained.config, type(run.trained.method)
    listed = METHODS.get(config.method)
    return {
        "label": run.label,
        "command": config.command() if listed else None,
        "device": config.device,
        "about": method_about(config.method),
        "paper": listed.paper if listed else "",
        "equation": method.equation,
        "settings": config.shown_settings(),
        "config": json.dumps(config.to_json(), indent=2),
    }


PANEL = Panel("reproduce", "Reproduce this run", "run", context)
