"""Configuration of a run: options, settings of the method, optimizer settings, files of older versions."""

from unweave.config.run_config import (
    ENGINES,
    OPTIMIZERS,
    OPTIONS,
    PRECISIONS,
    RunConfig,
    option_default,
    option_flag,
    read_config,
    split_options,
    train_parameters,
)
from unweave.config.settings import format_value, resolve, schedule

__all__ = [
    "ENGINES",
    "OPTIMIZERS",
    "OPTIONS",
    "PRECISIONS",
    "RunConfig",
    "format_value",
    "option_default",
    "option_flag",
    "read_config",
    "resolve",
    "schedule",
    "split_options",
    "train_parameters",
]
