"""`RunConfig`: every option of a run, declared once.

A field with an `Option` is an option of `train`: a keyword in Python and an option on the command line. From its
declaration follow the check of its value, whether the runs of one fleet may differ in it, whether it identifies the
run, and whether reports, comparison tables and the command that repeats the run show it. Fields without an `Option`
are filled in by the program. To add an option, add a field here and use it where it takes effect.

This module imports neither torch nor any module that does, so that `unweave --help` is fast.
"""

from __future__ import annotations

import inspect
import json
import re
import shlex
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, field, fields, replace
from typing import TYPE_CHECKING, Any, NamedTuple, get_type_hints

from unweave.config.optimizers import parse_rate
from unweave.config.settings import check_bounds, format_value
from unweave.errors import UserError, check_choice, check_integer, invalid, to_integer, to_number, use_current_names

if TYPE_CHECKING:
    from unweave.runs import RunFolder

FORMAT = 2  # of config.json; see migrate.py for older ones
ENGINES = ("auto", "loop", "compiled", "graph")
PRECISIONS = ("float32", "tf32", "bf16")
OPTIMIZERS = ("adam", "sgd")
_LOCATIONS = ("path", "factors", "fingerprint")  # options of data that do not change them if their digest is known
MAX_COUNT = 10**9  # number of steps, or batch size
MAX_SEED = 2**62 - 1


class Option(NamedTuple):
    """Declaration of one option of `train`."""

    help: str
    check: Callable[[str, Any], Any] = lambda name, value: value  # (name, value) -> the value to store; raises
    cli: type | None = None  # type on the command line, if it is not the field's
    shared: Callable[[Any], Any] | None = lambda value: value  # the part that replicas share; None: they may differ
    identity: bool = True  # a run cannot be resumed with another value
    compared: bool = True  # a setting for reports and comparison tables
    repeat: bool | None = None  # in the command that repeats a run: always, never, or None: if not the default
    alias: str = ""  # an earlier name, accepted but not shown


# Options that do not change what a run computes.
EXECUTION: dict[str, Any] = {"identity": False, "compared": False, "repeat": False}


def option(default: Any, help: str, **declared: Any) -> Any:
    return field(default=default, metadata={"option": Option(help, **declared)})


def integer(low: int, high: int | None = None) -> Callable[[str, Any], int]:
    return lambda name, value: check_integer(name, value, low, high)


def choice(*accepted: str) -> Callable[[str, Any], str]:
    return lambda name, value: check_choice(name, value, accepted)


def boolean(name: str, value: Any) -> bool:
    if not isinstance(value, bool):
        raise invalid(name, value, "True or False")
    return value


def _clip(name: str, value: Any) -> float:
    if isinstance(value, str) or (number := to_number(value)) is None:
        raise invalid(name, value, "a number >= 0")
    return float(check_bounds(name, number, 0.0))  # type: ignore[arg-type]


def checkpoint_interval(name: str, value: Any) -> int | str:
    """Check "30s" (seconds) or an integer (steps); integers may come as text from the command line."""
    number = to_number(value.strip()[:-1]) if isinstance(value, str) and value.strip().endswith("s") else None
    if number is not None and number >= 0:
        return f"{format_value(number)}s"
    try:
        return check_integer(name, to_integer(value) if isinstance(value, str) else value, 1)
    except UserError:
        raise invalid(name, value, "a number of steps such as 500, or of seconds such as 30s") from None


@dataclass(frozen=True)
class RunConfig:
    """Configuration of one run, complete and checked."""

    method: str
    arguments: dict[str, Any]  # constructor arguments of the method
    hyper: dict[str, Any]  # its hyperparameters: numbers, or schedules (start, end, steps, begin)
    data: str
    data_options: dict[str, Any]
    optimizers: dict[str, dict[str, Any]]  # resolved settings of each player's optimizer
    supervision: str = option(
        None, "'pairs(k=1)', 'labels(n=100)', 'groups(by=[...], size=2)', ...; default: what the method needs", cli=str
    )
    steps: int = option(
        10_000, "number of training steps", check=integer(1, MAX_COUNT), shared=None, compared=False, repeat=True
    )
    batch: int = option(64, "observations, pairs or groups per step", check=integer(2, MAX_COUNT), repeat=True)
    seed: int = option(
        0, "seed of all random numbers", check=integer(0, MAX_SEED), shared=None, compared=False, repeat=True
    )
    lr: float | str | tuple | None = option(
        None,
        "learning rate: a number, linear(start, end, steps), or x0.1 to multiply the method's default",
        check=parse_rate,
        cli=str,
        shared=None,
    )
    optimizer: str = option("adam", "adam, or sgd: gradient descent with momentum", check=choice(*OPTIMIZERS))
    clip: float = option(0.0, "largest gradient norm of a player; 0 is off", check=_clip, shared=bool)
    init: str = option(
        "glorot",
        "initial weights: glorot, or normal(0.02) with a standard deviation",
        check=lambda name, value: str(value).strip(),
        shared=None,
        alias="start",
    )
    init_from: str | None = option(None, "run folder whose weights a new run starts from", shared=None)
    precision: str = option("float32", "float32, tf32 or bf16", check=choice(*PRECISIONS))
    engine: str = option(
        "auto", "auto, loop, compiled or graph", check=choice(*ENGINES), identity=False, compared=False
    )
    device: str = option("auto", "auto, cpu, cuda, cuda:N or mps", check=lambda name, value: str(value), **EXECUTION)
    log_every: int = option(100, "steps between two records of the log", check=integer(1), compared=False, repeat=False)
    validate_every: int = option(
        1000, "steps between two validations", check=integer(1), shared=None, compared=False, repeat=False
    )
    checkpoint_every: int | str = option(
        "30s",
        "time between two checkpoints: seconds such as 30s, or steps such as 500",
        check=checkpoint_interval,
        cli=str,
        shared=None,
        **EXECUTION,
    )
    keep_state: bool = option(
        False,
        "keep the optimizer state of the finished run, so that it can be extended",
        check=boolean,
        shared=None,
        **EXECUTION,
    )
    created: str = ""
    versions: dict[str, str] = field(default_factory=dict)
    notices: list[str] = field(default_factory=list)  # about the user's own data, for the record
    data_digest: str = ""  # `Dataset.digest` of the data; "" in runs of older versions

    def __getitem__(self, name: str) -> Any:
        """Return a field; the configuration of a run was a dict in earlier versions."""
        return getattr(self, ALIASES.get(name, name))

    @property
    def learning_rates(self) -> dict[str, Any]:
        return {player: settings["lr"] for player, settings in self.optimizers.items()}

    def replace(self, **changes: Any) -> RunConfig:
        return replace(self, **changes)

    def to_json(self) -> dict[str, Any]:
        return {"format": FORMAT, **asdict(self)}

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> RunConfig:
        """Return the configuration in a config.json of this format; unknown keys are ignored, missing ones default."""
        known = {f.name: stored[f.name] for f in fields(cls) if f.name in stored}
        schedules = ("hyper", "optimizers", "lr")
        return cls(**{name: _tuples(value) if name in schedules else value for name, value in known.items()})

    # --- what differs between runs ---------------------------------------------------------------------------------

    def cohort_key(self) -> str:
        """Return a text that is equal for runs which may train as replicas of one fleet (on the same data object)."""
        shapes = {p: {n: v for n, v in s.items() if n not in ("lr", "clip")} for p, s in self.optimizers.items()}
        shared = {
            n: declared.shared(getattr(self, n)) for n, declared in OPTIONS.items() if declared.shared is not None
        }
        return _text([self.model_key(), shapes, shared])

    def model_key(self) -> str:
        """Return a text that is equal for runs whose models and data have the same form."""
        return _text([self.method, self.arguments, self.data, self.data_options])

    def data_key(self) -> str:
        """Return a text that is equal for runs on the same data: the whole call, and the digest if there is one."""
        return data_key(self.data_text(), self.data_digest)

    def setting_key(self) -> str:
        """Return a text that is equal for runs which are seeds of one setting: only such runs may be averaged."""
        return _text([self.method, self.data_key(), self.steps, self.compared_settings(), self.optimizers])

    def difference(self, other: RunConfig) -> str:
        """Return the name of the first field that makes the other configuration a different run, or "".

        The content of the data is compared by `check_data` of unweave.model.
        """
        ours, theirs = (_without_fingerprint(json.loads(json.dumps(config.to_json()))) for config in (self, other))
        free = {"device", "created", "versions", "notices", "data_digest"}
        free |= {name for name, declared in OPTIONS.items() if not declared.identity}
        return next((name for name in ours if name not in free and ours[name] != theirs[name]), "")

    def compared_settings(self) -> dict[str, Any]:
        """Return the settings in which the runs of a comparison may differ, apart from method, data, steps and seed."""
        rates = {_text(rate): rate for rate in self.learning_rates.values()}
        lr = next(iter(rates.values())) if len(rates) == 1 else str(list(rates.values()))
        chosen = {name: getattr(self, name) for name, declared in OPTIONS.items() if declared.compared}
        return {**self.hyper, **self.arguments, **chosen, "lr": lr}

    def shown_settings(self) -> dict[str, str]:
        """Return the choices of a user as text, for reports."""
        rates = {player: format_value(rate) for player, rate in self.learning_rates.items()}
        lr = ", ".join(dict.fromkeys(rates.values()) if len(set(rates.values())) < 2 else map(" ".join, rates.items()))
        listed = [name for name, declared in OPTIONS.items() if (declared.compared or declared.repeat) and name != "lr"]
        options = {name: getattr(self, name) for name in listed if getattr(self, name) is not None}
        chosen = {"method": self.method, **self.hyper, **self.arguments, "data": self.data_text(), **options}
        return {**{name: format_value(value) for name, value in chosen.items()}, "learning rate": lr}

    # --- as a user types it ----------------------------------------------------------------------------------------

    def data_text(self) -> str:
        """Return the data set as the command line takes it, without options at their defaults."""
        from unweave.data import DATASETS
        from unweave.data.callspec import call_text

        cls = DATASETS.get(self.data)
        known = inspect.signature(cls).parameters if cls else {}
        given = {n: v for n, v in self.data_options.items() if n not in known or known[n].default != v}
        return call_text(self.data, given)

    def command(self) -> list[str]:
        """Return the command that trains this run again, quoted for a shell and split before each option.

        Constructor arguments and options that have their default value are left out.
        """
        from unweave.config.settings import all_settings
        from unweave.methods import METHODS

        cls = METHODS.get(self.method)
        static = all_settings(cls)[0] if cls else {}
        chosen = {n: v for n, v in self.arguments.items() if n not in static or static[n].default != v}
        parts = [["unweave", "train", self.method], ["--data", self.data_text()]]
        parts += [["--set", f"{name}={format_value(value)}"] for name, value in {**self.hyper, **chosen}.items()]
        for name, declared in OPTIONS.items():
            value = getattr(self, name)
            changed = value != option_default(name) and (name, value) != ("supervision", "none")
            if declared.repeat or (declared.repeat is None and changed):
                parts.append([option_flag(name)] + [format_value(value)] * (value is not True))
        return [shlex.join(part) for part in parts]


OPTIONS: dict[str, Option] = {f.name: f.metadata["option"] for f in fields(RunConfig) if "option" in f.metadata}
ALIASES = {declared.alias: name for name, declared in OPTIONS.items() if declared.alias}


def data_key(call: str, digest: str) -> str:
    """Return a text that is equal for the same data: the whole call, and the digest if there is one.

    With a digest of all observations it does not matter where the data are stored.
    """
    from unweave.data.callspec import call_text, parse_call

    if not digest or digest.endswith("-sampled"):
        return _text([call, digest])
    with suppress(UserError):  # a data set of the user's own, with another kind of name
        name, options = parse_call(call)
        call = call_text(name, {n: v for n, v in options.items() if n not in _LOCATIONS})
    return _text([call, digest])


def option_default(name: str) -> Any:
    return RunConfig.__dataclass_fields__[name].default


def option_flag(name: str) -> str:
    return "--" + name.replace("_", "-")


def split_options(keywords: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Split the keywords of `train` into checked options, complete with defaults, and settings of the method."""
    named = use_current_names(keywords, ALIASES)
    options = {name: named.pop(name, option_default(name)) for name in OPTIONS}
    return {name: OPTIONS[name].check(name, value) for name, value in options.items()}, named


def train_parameters(command_line: bool = False) -> list[inspect.Parameter]:
    """Return the options as keyword parameters, for the signature of `train` or of its command."""
    keyword, parameters, hints = inspect.Parameter.KEYWORD_ONLY, [], get_type_hints(RunConfig)
    for name, declared in OPTIONS.items():
        kind, default = (command_line and declared.cli) or hints[name], option_default(name)
        kind = kind if default is not None else kind | None
        parameters.append(inspect.Parameter(name, keyword, default=default, annotation=kind))
    return parameters


def read_config(folder: RunFolder) -> RunConfig:
    """Return the configuration in a run folder, of any version; raise if it is damaged."""
    return parse_config(folder.read_json("config.json"), folder)


def parse_config(stored: Any, folder: RunFolder) -> RunConfig:
    """Return a configuration that was stored for a run, by any version; raise if it is damaged."""
    from unweave.config.migrate import migrate
    from unweave.config.schema import check_types
    from unweave.runs import damaged

    if isinstance(stored, dict) and isinstance(stored.get("format", 1), int) and stored.get("format", 1) > FORMAT:
        hint = f"a newer version of unweave wrote format {stored['format']}"
        raise invalid("run", str(folder.path), f"of format {FORMAT} or older", hint=hint)
    try:
        config = RunConfig.from_json(migrate(stored))
        check_types(config)
    except (ValueError, OverflowError) as error:
        raise damaged(folder.path, f"in config.json, {error}") from error
    except (AttributeError, KeyError, TypeError) as error:
        raise damaged(folder.path, "config.json does not describe a run") from error
    return config


def _without_fingerprint(config: dict[str, Any]) -> dict[str, Any]:
    """Remove the fingerprint that older versions stored in the options of the data, also in the text of a view."""
    options = {name: value for name, value in config["data_options"].items() if name != "fingerprint"}
    if isinstance(options.get("data"), str):
        options["data"] = re.sub(r", fingerprint=\\?'[^']*'", "", options["data"])
    return config | {"data_options": options}


def _tuples(value: Any) -> Any:
    """Turn the lists of JSON that stand for schedules into tuples."""
    if isinstance(value, dict):
        return {name: _tuples(entry) for name, entry in value.items()}
    numbers = isinstance(value, list) and len(value) in (2, 4) and all(isinstance(v, int | float) for v in value)
    return tuple(value) if numbers else value


def _text(value: Any) -> str:
    return json.dumps(value, sort_keys=True, default=str)
