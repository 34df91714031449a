"""The check of a configuration that was read from a file."""

from typing import Any, get_type_hints

from unweave.config.run_config import OPTIONS, RunConfig
from unweave.runs.schema import check_fields

_Number = float | tuple[float, float, float, float]
_OPTIMIZER = {"lr": _Number, "clip": float, "betas": tuple[float, float], "eps": float, "momentum": float}


def check_types(config: RunConfig) -> None:
    """Raise a ValueError that names the first field whose type or value is not accepted."""
    kinds: dict[str, Any] = {**get_type_hints(RunConfig), "supervision": str | None, "hyper": dict[str, _Number]}
    values = {name: getattr(config, name) for name in kinds}
    check_fields(values, kinds)
    for name, declared in OPTIONS.items():
        declared.check(name, values[name])
    for player, settings in config.optimizers.items():
        adam = {"betas", "eps"} <= settings.keys()
        if not {"lr", "clip"} <= settings.keys() or not (adam or "momentum" in settings):
            raise ValueError(f"the settings of optimizer '{player}' are incomplete")
        check_fields(settings, _OPTIMIZER)
