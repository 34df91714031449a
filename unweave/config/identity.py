"""The identity of a run: the part of its configuration that determines the result, stored with the weights."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from unweave.config.migrate import migrate
from unweave.config.run_config import OPTIONS, RunConfig
from unweave.config.settings import all_settings, resolve_settings
from unweave.errors import UserError

if TYPE_CHECKING:
    from unweave.contract import Method

_ABOUT_THE_MACHINE = ("device", "created", "versions", "notices")
_LOCATIONS = ("path", "factors")  # of data, which may be moved: their content is compared instead


def identity(config: RunConfig) -> dict[str, Any]:
    """Return the fields of a configuration that determine the result of the training, as JSON."""
    stored = json.loads(json.dumps(config.to_json()))
    stored["data_options"] = {n: v for n, v in stored["data_options"].items() if n not in _LOCATIONS}
    free = {*_ABOUT_THE_MACHINE, *(name for name, declared in OPTIONS.items() if not declared.identity)}
    return {name: value for name, value in stored.items() if name not in free}


def complete_settings(config: RunConfig, cls: type[Method]) -> RunConfig:
    """Return the configuration with its settings checked like those of a new run; missing ones have their default."""
    static, _ = all_settings(cls, config.arguments)
    given = {**config.hyper, **config.arguments}
    unset = [
        n for n, p in static.items() if n in given and given[n] == p.default and not isinstance(p.default, str | float)
    ]
    arguments, hyper = resolve_settings(cls, {name: value for name, value in given.items() if name not in unset})
    return config.replace(arguments=arguments, hyper=hyper)


def check_identity(
    run: Path, config: RunConfig, cls: type[Method], stored: Mapping[str, Any] | None, file: str, *, extended: bool
) -> None:
    """Raise if a run's config.json was changed since `file` was written, which contains the identity `stored`.

    With `extended`, the number of steps may have become larger. Files of older versions contain no identity.
    """
    if not stored:
        return
    then = RunConfig.from_json(migrate(stored))
    _compare(run, file, "method", config.method, then.method)
    now, then = complete_settings(config, cls), complete_settings(then, cls)
    if extended and now.steps > then.steps:
        then = then.replace(steps=now.steps)
    entries, before = dict(_entries(identity(now))), dict(_entries(identity(then)))
    for name in {**before, **entries}:
        _compare(run, file, name, entries.get(name, "missing"), before.get(name, "missing"))


def _entries(values: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for name, value in values.items():
        if isinstance(value, dict):
            yield from _entries(value, f"{prefix}{name}.")
        else:
            yield prefix + name, value


def _compare(run: Path, file: str, name: str, now: Any, then: Any) -> None:
    if now != then:
        message = f"run '{run}': {name} is {now!r} in config.json, but {file} was trained with {then!r}"
        hint = "restore config.json, or train a new run with the other value"
        raise UserError(f"{message}; {hint}", argument=name.partition(".")[0], value=now, accepted=repr(then))
