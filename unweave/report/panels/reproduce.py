"""The command that trains a run again, and all its settings."""

import json

from unweave.methods import METHODS
from unweave.report.formatting import module_summary
from unweave.report.panel import Panel
from unweave.report.views import RunView


def context(run: RunView) -> dict[str, object]:
    config = run.trained.config
    about = {
        "about": module_summary(config.method)[1],
        "config": config,
        "json": json.dumps(config.to_json(), indent=2),
    }
    return {**about, "method": METHODS.get(config.method), "equation": type(run.trained.method).equation}


PANEL = Panel("reproduce", "Reproduce this run", "run", context)
