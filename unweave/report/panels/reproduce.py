"""The command that trains a run again, and all its settings."""

import json

from unweave.methods import METHODS
from unweave.report.formatting import method_about
from unweave.report.panel import Panel
from unweave.report.views import RunView


def context(run: RunView) -> dict[str, object]:
    config = run.trained.config
    about = {"about": method_about(config.method), "config": config, "json": json.dumps(config.to_json(), indent=2)}
    return {**about, "method": METHODS.get(config.method), "equation": type(run.trained.method).equation}


PANEL = Panel("reproduce", "Reproduce this run", "run", context)
