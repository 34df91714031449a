"""Settings of a method as a user writes them (`beta=6`, `beta="linear(0, 4, 10000)"`): parsing, checks, display."""

from __future__ import annotations

import math
import re
from collections.abc import Container, Mapping
from typing import TYPE_CHECKING, Any

from unweave.errors import check_choice, invalid, to_number, use_current_names

if TYPE_CHECKING:
    import inspect

    from unweave.contract import HyperParam, Method

Value = float | tuple[float, float, float, float]
SCHEDULE = "a finite number or linear(start, end, steps[, begin]) with steps >= 1"
MAX_FLOAT = 3.4e38  # settings are float32 in training; larger numbers would be infinite
MAX_INTEGER = 10**9
OLD_SETTINGS = {  # earlier names, accepted but not shown
    "critic_width": "discriminator_width",
    "critic_depth": "discriminator_depth",
    "contests": "discriminator_steps",
    "normed": "batch_norm",
    "style_normed": "style_batch_norm",
}
_BOOLEANS = {"true": True, "1": True, "yes": True, "false": False, "0": False, "no": False}


def parse_schedule(name: str, value: Any) -> Value:
    """Parse a number, or a linear schedule `linear(start, end, steps[, begin])` over the training steps."""
    match = re.fullmatch(r"linear\(([^()]*)\)", value.strip()) if isinstance(value, str) else None
    if match is None and not isinstance(value, tuple | list):
        if (number := to_number(value)) is not None:
            return number
        raise invalid(name, value, SCHEDULE)
    numbers = list(map(to_number, match[1].split(",") if match else value))
    numbers += [0.0] * (match is not None and len(numbers) == 3)
    if len(numbers) == 4 and None not in numbers:
        start, end, steps, begin = (number or 0.0 for number in numbers)
        if 1 <= steps <= MAX_FLOAT and abs(begin) <= MAX_FLOAT:
            return (start, end, steps, begin)
    raise invalid(name, value, SCHEDULE)


def format_value(value: Any) -> str:
    """Format a setting as a user types it: schedules as linear(...), integral floats without a decimal point."""
    if isinstance(value, list | tuple) and len(value) == 4:
        return f"linear({','.join(format_value(v) for v in value)})"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e15:
        return str(int(value))
    return str(value)


def check_bounds(name: str, value: Value, low: float, high: float = math.inf) -> Value:
    """Return the value; raise unless it is a number in `low`..`high` along its whole schedule, also in float32."""
    for end in value[:2] if isinstance(value, tuple) else (value,):
        if not (low <= end <= high) or abs(end) > MAX_FLOAT:
            low, high = max(low, -MAX_FLOAT), MAX_FLOAT if MAX_FLOAT < end < math.inf else high
            wanted = f"a number >= {low:g}" if high == math.inf else f"a number from {low:g} to {high:g}"
            raise invalid(name, end, wanted)
    return value


def _static(name: str, value: Any, parameter: inspect.Parameter) -> Any:
    """Convert the value to the type of the constructor argument's default."""
    kind, text = type(parameter.default), str(value).strip()
    if kind is bool:
        if text.lower() not in _BOOLEANS:
            raise invalid(name, value, "true or false")
        return _BOOLEANS[text.lower()]
    if kind not in (int, float):
        return kind(text)
    number = to_number(value)
    if number is None or (kind is int and not number.is_integer()):
        raise invalid(name, value, "an integer" if kind is int else "a finite number")
    if abs(number) > (largest := MAX_INTEGER if kind is int else MAX_FLOAT):
        raise invalid(name, value, f"at most {largest:g}" if number > 0 else f"at least {-largest:g}")
    return kind(number)


def all_settings(
    method: type[Method], settings: Container[str] = ()
) -> tuple[dict[str, inspect.Parameter], dict[str, HyperParam]]:
    """Return the constructor arguments and hyperparameters of all stages, and of the label term if it is set."""
    from unweave.contract import hyper_params, stages, static_arguments
    from unweave.methods.semi_supervised import label_term_settings

    static: dict[str, inspect.Parameter] = {}
    traced: dict[str, HyperParam] = {}
    for stage in stages(method):
        static |= static_arguments(stage)
        traced |= hyper_params(stage)
    more_static, more_traced = label_term_settings(method, settings)
    return {**static, **more_static}, {**traced, **more_traced}


def resolve_settings(method: type[Method], settings: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Value]]:
    """Split a user's settings into constructor arguments and hyperparameters of all stages, with defaults filled in."""
    from unweave.contract import stages

    static, traced = all_settings(method, settings)
    for name in settings:
        if OLD_SETTINGS.get(name) not in static:
            check_choice("setting", name, [*traced, *static], context=method.__name__)
    settings = use_current_names(settings, OLD_SETTINGS)
    arguments = {n: _static(n, settings[n], p) if n in settings else p.default for n, p in static.items()}
    hyper = {
        n: check_bounds(n, parse_schedule(n, settings.get(n, param.default)), param.low, param.high)
        for n, param in traced.items()
    }
    for stage in stages(method):
        stage.check_hyper({name: value for name, value in hyper.items() if isinstance(value, float)})
    return arguments, hyper
