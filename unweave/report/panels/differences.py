"""The settings in which runs differ."""

from collections.abc import Sequence
from typing import Any

from unweave.config import RunConfig, format_value
from unweave.contract import static_arguments
from unweave.evaluation.run_table import data_labels
from unweave.methods import METHODS
from unweave.report.formatting import DASH, method_title
from unweave.report.panel import Panel
from unweave.report.views import ComparisonView


def context(page: ComparisonView) -> dict[str, Any] | None:
    rows = differences([run.trained.config for run in page.runs])
    return {"rows": rows} if rows else None


def differences(configs: Sequence[RunConfig]) -> list[tuple[str, list[str]]]:
    """Return the settings in which runs differ, each with its value per run."""
    rows = [config.shown_settings() for config in configs]
    table = {name: [row.get(name, DASH) for row in rows] for row in rows for name in row}
    if len(set(table["data"])) < len({config.data_key() for config in configs}):  # it differs in the digest
        table["data"] = data_labels(table["data"], [config.data_digest for config in configs])
    table["method"] = [method_title(name) for name in table["method"]]
    differing = [(name, values) for name, values in table.items() if len(set(values)) > 1]
    return [(name, values) for name, values in differing if not _unused(name, configs, values)]


def _unused(name: str, configs: Sequence[RunConfig], values: Sequence[str]) -> bool:
    """Return True if only some methods have this argument, and all of them leave it at its default."""
    static = [static_arguments(METHODS[c.method]) if c.method in METHODS else {} for c in configs]
    defaults = [format_value(known[name].default if name in known else None) for known in static]
    return DASH in values and all(value in (DASH, default) for value, default in zip(values, defaults, strict=True))


PANEL = Panel("differences", "Settings that differ", "comparison", context, needs=("differences",))
