"""Configuration of a run: options, settings of the method, optimizer settings, files of older versions."""

from unweave.config.run_config import ENGINES, OPTIMIZERS, PRECISIONS, RunConfig, read_config
from unweave.config.settings import format_value, resolve, schedule

__all__ = [
    "ENGINES",
    "OPTIMIZERS",
    "PRECISIONS",
    "RunConfig",
    "format_value",
    "read_config",
    "resolve",
    "schedule",
]
