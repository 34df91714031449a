"""The content of config.json as older versions wrote it, converted to the current format."""

import re
from collections.abc import Mapping
from typing import Any

from unweave.config.settings import OLD_SETTINGS
from unweave.runs import current_name


def migrate(stored: Mapping[str, Any]) -> dict[str, Any]:
    """Return the content of a config.json of any version in the current format."""
    config = dict(stored)
    if isinstance(config.get("data_options"), Mapping):
        config["data_options"] = _array_rules(config.get("data"), config["data_options"])
    if config.get("format", 1) >= 2:
        return config
    config["init"] = config.pop("start", config.pop("init", "glorot"))
    for part in ("arguments", "hyper"):
        config[part] = {OLD_SETTINGS.get(name, name): value for name, value in config[part].items()}
    config["optimizers"] = {current_name(player): settings for player, settings in config["optimizer"].items()}
    config["optimizer"] = "sgd" if any("momentum" in s for s in config["optimizers"].values()) else "adam"
    config["clip"] = max((s["clip"] for s in config["optimizers"].values()), default=0.0)
    config["lr"] = _given_rate(config)
    config["validate_every"] = config["checkpoint_every"]
    config["notices"] = config.pop("left_out", [])
    config["data_options"] = _rename_factor_types(config["data_options"])
    return config


def _array_rules(name: Any, options: Mapping[str, Any]) -> dict[str, Any]:
    """Add the version of the rules by which arrays were read if it is not stored; also in the texts of views."""
    rules: dict[str, Any] = {"rules": 1} if name == "arrays" and "path" in options and "rules" not in options else {}
    text = options.get("data")
    if isinstance(text, str) and "rules=" not in text:
        rules = {"data": re.sub(r"\barrays\((?=path=)", "arrays(rules=1, ", text)}
    return {**options, **rules}


def _rename_factor_types(options: Mapping[str, Any]) -> dict[str, Any]:
    """Rename the option `kinds` of user data, also in the texts that views store of their data."""
    renamed = {"factor_types" if name == "kinds" else name: value for name, value in options.items()}
    if isinstance(text := renamed.get("data"), str):
        renamed["data"] = re.sub(r"(?<=[(, ])kinds=(?=\{)", "factor_types=", text)
    return renamed


def _given_rate(config: Mapping[str, Any]) -> Any:
    """Return the option lr that leads to these optimizer settings; None if they are the method's defaults."""
    from unweave.config.optimizers import published_defaults
    from unweave.config.settings import format_value
    from unweave.methods import METHODS

    cls = METHODS.get(config["method"])
    published = published_defaults(cls) if cls else {}
    rates = {player: settings["lr"] for player, settings in config["optimizers"].items()}
    own = {
        player: (defaults.get("sgd", {}) if config["optimizer"] == "sgd" else {"lr": 1e-4, **defaults}).get("lr")
        for player, defaults in published.items()
    }
    if not rates or all(format_value(rate) == format_value(own.get(player)) for player, rate in rates.items()):
        return None
    player, rate = next(iter(rates.items()))
    if len({format_value(rate) for rate in rates.values()}) == 1 or not own.get(player):
        return rate
    ends = [float(f"{end / own[player]:.12g}") for end in (rate[:2] if isinstance(rate, list | tuple) else [rate])]
    factor = (*ends, *rate[2:]) if isinstance(rate, list | tuple) else ends[0]
    return f"x{format_value(factor)}"
