"""The command line that trains a run again."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from typing import Any

from unweave.contract import Method, stages, static_arguments
from unweave.methods import METHODS
from unweave.nn.networks import GLOROT
from unweave.report.words import data_call, format_value
from unweave.runs import optimizer_name


def repeat_command(config: Mapping[str, Any]) -> str:
    """The command line that trains this run again; what the method's own defaults give is left out."""
    return " ".join(command_parts(config))


def command_parts(config: Mapping[str, Any]) -> list[str]:
    """The command, quoted for a shell, cut before each option."""
    words, parts = _command_words(config), [""]
    for word in words:
        if word.startswith("--"):
            parts.append("")
        parts[-1] = f"{parts[-1]} {shlex.quote(word)}".strip()
    return parts


def _command_words(config: Mapping[str, Any]) -> list[str]:
    cls = METHODS.get(config["method"])
    static = static_arguments(cls) if cls else {}
    chosen = {n: v for n, v in config["arguments"].items() if n not in static or static[n].default != v}
    words = ["unweave", "train", config["method"], "--data", data_call(config)]
    if config["supervision"] != "none":
        words += ["--supervision", config["supervision"]]
    for name, value in {**config["hyper"], **chosen}.items():
        words += ["--set", f"{name}={format_value(value)}"]
    for option in ("steps", "batch", "seed"):
        words += [f"--{option}", format_value(config[option])]
    words += _optimizer_words(config, cls)
    for option, default in (("init", GLOROT), ("precision", "float32"), ("engine", "auto")):
        if config.get(option, default) != default:
            words += [f"--{option}", config[option]]
    return words


def _optimizer_words(config: Mapping[str, Any], cls: type[Method] | None) -> list[str]:
    """--optimizer and --lr where they are not the recipe's, --clip where it is on."""
    optimizer, name = config["optimizer"], optimizer_name(config)
    words = [] if name == "adam" else ["--optimizer", name]
    optimizer_defaults = {
        player: own for stage in (stages(cls) if cls else []) for player, own in stage.optimizer_defaults.items()
    }
    own = {player: optimizer_defaults.get(player, {}) for player in optimizer}
    rates = {p: format_value(s["lr"]) for p, s in optimizer.items()}
    published = {p: (r if name == "adam" else r.get("sgd", {})).get("lr") for p, r in own.items()}
    if any(rates[player] != format_value(published[player]) for player in rates):
        player = next(iter(rates))
        if len(set(rates.values())) == 1:
            words += ["--lr", rates[player]]
        elif first := published[player]:  # the recipe's, each times the same
            words += ["--lr", "x" + format_value(_over(optimizer[player]["lr"], first))]
    clips = {format_value(s["clip"]) for s in optimizer.values()} - {"0"}
    return words + (["--clip", clips.pop()] if clips else [])


def _over(rate: Any, own: float) -> Any:
    """A rate as a multiple of another, without what rounding left."""
    if isinstance(rate, list | tuple):
        return (*(float(f"{end / own:.12g}") for end in rate[:2]), *rate[2:])
    return float(f"{rate / own:.12g}")
