"""Configuration of a run: options, settings of the method, optimizer settings, files of older versions."""

from unweave.config.run_config import (
    ENGINES,
    OPTIMIZERS,
    OPTIONS,
    PRECISIONS,
    RunConfig,
    option_default,
    option_flag,
    parse_config,
    read_config,
    split_options,
    train_parameters,
)
from unweave.config.settings import format_value, parse_schedule, resolve_settings

__all__ = [
    "ENGINES",
    "OPTIMIZERS",
    "OPTIONS",
    "PRECISIONS",
    "RunConfig",
    "format_value",
    "option_default",
    "option_flag",
    "parse_config",
    "parse_schedule",
    "read_config",
    "resolve_settings",
    "split_options",
    "train_parameters",
]
