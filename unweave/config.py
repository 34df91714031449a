"""From what a user writes (`beta=6`, `beta="linear(0, 4, 10000)"`) to checked method arguments."""

from __future__ import annotations

import inspect
import math
import re
from collections.abc import Mapping
from typing import Any

from unweave.contract import HyperParam, Method, hyper_params, stages, static_arguments
from unweave.errors import UserError, check_choice

Value = float | tuple[float, float, float, float]


def schedule(name: str, text: Any) -> Value:
    """A number, or a straight line over the steps: linear(start, end, steps[, begin])."""
    if isinstance(text, int | float) and not isinstance(text, bool):
        return float(text)
    if isinstance(text, tuple | list) and len(text) == 4:
        return tuple(float(v) for v in text)  # type: ignore[return-value]
    try:
        return float(text)
    except (TypeError, ValueError):
        pass
    if match := re.fullmatch(r"linear\(([^()]*)\)", str(text).strip()):
        try:
            values = [float(part) for part in match[1].split(",")]
        except ValueError:
            values = []
        if len(values) in (3, 4) and values[2] > 0:
            return (values[0], values[1], values[2], values[3] if len(values) == 4 else 0.0)
    raise UserError(f"{name} '{text}' is not understood; use a number or linear(start, end, steps[, begin])")


def _checked(name: str, value: Value, knob: HyperParam) -> Value:
    """The value, inside the knob's bounds all along its schedule."""
    ends = value[:2] if isinstance(value, tuple) else (value,)
    for end in ends:
        if not (knob.low <= end <= knob.high) or math.isnan(end) or math.isinf(end):
            upper = f" and at most {knob.high:g}" if knob.high < math.inf else ""
            raise UserError(f"{name} {end:g} is out of range; use a value of at least {knob.low:g}{upper}")
    return value


def _static(name: str, value: Any, parameter: inspect.Parameter) -> Any:
    """The value in the type of the argument's default."""
    kind = type(parameter.default)
    text = str(value).strip()
    if kind is bool:
        words = {"true": True, "1": True, "yes": True, "false": False, "0": False, "no": False}
        if text.lower() not in words:
            raise UserError(f"{name} '{value}' is not understood; use true or false")
        return words[text.lower()]
    try:
        if kind is int and float(text) != int(float(text)):
            raise ValueError
        return kind(float(text)) if kind is int else kind(text)
    except ValueError:
        wanted = {int: "a whole number", float: "a number"}.get(kind, "text")
        raise UserError(f"{name} '{value}' is not understood; use {wanted}") from None


def resolve(method: type[Method], given: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Value]]:
    """Split what a user set into constructor arguments and hyper-parameters of all stages, defaults filled in."""
    traced: dict[str, HyperParam] = {}
    static: dict[str, inspect.Parameter] = {}
    for stage in stages(method):
        traced |= hyper_params(stage)
        static |= static_arguments(stage)
    for name in given:
        check_choice("hyper-parameter", name, [*traced, *static])
    fixed = {n: _static(n, given[n], p) if n in given else p.default for n, p in static.items()}
    hyper = {n: _checked(n, schedule(n, given.get(n, k.default)), k) for n, k in traced.items()}
    for stage in stages(method):
        stage.check_hyper({name: value for name, value in hyper.items() if isinstance(value, float)})
    return fixed, hyper
