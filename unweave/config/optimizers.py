"""Optimizer settings of each player: the method's published defaults combined with the options of a run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from unweave.config.settings import check_bounds, parse_schedule
from unweave.errors import check_choice, invalid

if TYPE_CHECKING:
    from unweave.contract import Method

ADAM = {"lr": 1e-4, "betas": (0.9, 0.999), "eps": 1e-8}
SGD = {"lr": 0.0, "momentum": 0.9}


def published_defaults(cls: type[Method]) -> dict[str, Mapping[str, Any]]:
    """Return the declared optimizer settings of each player of each stage; raise if a player or a key is unknown."""
    from unweave.contract import stages

    for stage in stages(cls):
        for player in stage.optimizer_defaults:
            check_choice("player", player, stage.players, context=f"{stage.__name__}.optimizer_defaults")
    defaults = {player: stage.optimizer_defaults.get(player, {}) for stage in stages(cls) for player in stage.players}
    for player, declared in defaults.items():
        for settings, known in ((declared, [*ADAM, "sgd"]), (declared.get("sgd", {}), list(SGD))):
            for name in settings:
                check_choice("optimizer setting", name, known, context=f"{cls.__name__}, player '{player}'")
    return defaults


def resolve_optimizers(
    cls: type[Method], lr: Any = None, clip: float = 0.0, optimizer: str = "adam"
) -> dict[str, dict[str, Any]]:
    """Return the optimizer settings of each player.

    `lr` replaces the learning rate of all players; "x0.1" or "x linear(1, 0, 1000)" multiplies each player's own.
    """
    found: dict[str, dict[str, Any]] = {}
    for player, declared in published_defaults(cls).items():
        if optimizer == "adam":
            settings = {**ADAM, **{name: value for name, value in declared.items() if name != "sgd"}}
        else:
            if "sgd" not in declared and (lr is None or _is_factor(lr)):
                context = f"{cls.__name__} has no default learning rate for optimizer 'sgd'"
                raise invalid("lr", lr, "a number such as 0.01, or a schedule", context=context)
            settings = {**SGD, **declared.get("sgd", {})}
        found[player] = {**settings, "lr": _learning_rate(settings["lr"], lr), "clip": clip}
    return found


def parse_rate(name: str, lr: Any) -> Any:
    """Check a learning rate: a number, a schedule, or a factor such as "x0.1", which is returned as text."""
    if lr is None:
        return None
    rate = check_bounds(name, parse_schedule(name, lr.strip()[1:] if _is_factor(lr) else lr), 0.0)
    return lr.strip() if _is_factor(lr) else rate


def _is_factor(lr: Any) -> bool:
    return isinstance(lr, str) and lr.strip().startswith("x")


def _learning_rate(default: float, lr: Any) -> Any:
    if lr is None:
        return default
    factor = default if _is_factor(lr) else 1.0
    rate = parse_schedule("lr", lr.strip()[1:] if _is_factor(lr) else lr)
    return (factor * rate[0], factor * rate[1], *rate[2:]) if isinstance(rate, tuple) else factor * rate
