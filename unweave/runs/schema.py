"""Types of values that were read from JSON."""

from collections.abc import Mapping
from types import NoneType, UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints


def fits(value: Any, kind: Any) -> bool:
    """Return True if a value from JSON has this type: int, float, tuple[int, ...], dict[str, Any], str | None, ..."""
    origin, parts = get_origin(kind) or kind, get_args(kind)
    if kind is Any:
        return True
    if origin in (Union, UnionType):
        return any(fits(value, part) for part in parts)
    if origin is tuple:
        items = value if isinstance(value, list | tuple) else None
        kinds = parts[:1] * len(items or ()) if parts[1:] == (...,) else parts
        return items is not None and (not parts or _all_fit(items, kinds))
    if origin is list:
        return isinstance(value, list) and (not parts or _all_fit(value, parts * len(value)))
    if origin is dict:
        return isinstance(value, dict) and all(fits(v, parts[1]) for v in (value.values() if parts else ()))
    if kind in (int, float):
        whole = isinstance(value, int) and not isinstance(value, bool) and abs(value) < 2**63
        return whole or (kind is float and isinstance(value, float))
    return isinstance(value, NoneType if kind is None else kind)


def _all_fit(values: Any, kinds: Any) -> bool:
    return len(values) == len(kinds) and all(fits(v, kind) for v, kind in zip(values, kinds, strict=True))


def check_fields(values: Any, kinds: Mapping[str, Any] | type, *, required: bool = False) -> None:
    """Raise a ValueError that names the first entry whose type is not that of the field of its name."""
    if not isinstance(values, dict):
        raise ValueError("it is not an object")
    for name, kind in (get_type_hints(kinds) if isinstance(kinds, type) else kinds).items():
        if name in values and not fits(values[name], kind):
            shown = repr(values[name])
            raise ValueError(f"{name} has the wrong type: {shown if len(shown) < 60 else shown[:60] + '...'}")
        if required and name not in values:
            raise ValueError(f"{name} is missing")
