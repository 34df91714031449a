"""Check the options of a data set against the annotations of the function that opens it.

Ranges and choices are checked by the functions themselves; here only the types are, so that no reader needs to.
"""

import inspect
import os
import types
from collections.abc import Callable, Collection, Mapping, Sequence
from numbers import Integral, Real
from typing import Any, Union, get_args, get_origin

import numpy as np

from unweave.errors import check_path, invalid

_NAMES = {
    str: ("a text", "texts"),
    int: ("an integer", "integers"),
    float: ("a number", "numbers"),
    bool: ("True or False", "booleans"),
    type(None): ("None", "None"),
}


def check_options(
    function: Callable[..., Any], options: Mapping[str, object], context: str, skip: Collection[str] = ()
) -> dict[str, Any]:
    """Return the options, numpy scalars as numbers of Python; raise unless each has the annotated type.

    A path must be one that the system accepts.
    """
    for name, parameter in inspect.signature(function, eval_str=True).parameters.items():
        if name not in options or name in skip or parameter.annotation is inspect.Parameter.empty:
            continue
        value, accepted = options[name], _alternatives(parameter.annotation)
        if not any(_has_type(value, hint) for hint in accepted):
            raise invalid(name, value, _in_words(accepted, parameter.default), context=context)
        if value is not None and os.PathLike in map(_plain, accepted):
            check_path(name, value, context=context)
    return {name: value.item() if isinstance(value, np.generic) else value for name, value in options.items()}


def _alternatives(hint: Any) -> tuple[Any, ...]:
    return get_args(hint) if get_origin(hint) in (Union, types.UnionType) else (hint,)


def _plain(hint: Any) -> Any:
    """Return the class of an annotation without its parameters; `os.PathLike` for every kind of path."""
    plain = get_origin(hint) or hint
    return os.PathLike if isinstance(plain, type) and issubclass(plain, os.PathLike) else plain


def _has_type(value: object, hint: Any) -> bool:
    """Return True if a value is of an annotated type; numpy numbers are numbers, booleans are not."""
    plain = _plain(hint)
    if plain is Any:
        return True
    if plain in (int, float):
        return isinstance(value, Integral if plain is int else Real) and not isinstance(value, bool | np.bool_)
    if plain is bool:
        return isinstance(value, bool | np.bool_)
    if plain is Sequence:
        if not isinstance(value, Sequence) or isinstance(value, str | bytes):
            return False
        entries = _alternatives(get_args(hint)[0])
        return all(any(_has_type(entry, one) for one in entries) for entry in value)
    return isinstance(value, plain)


def _in_words(hints: Sequence[Any], default: object) -> str:
    """Return the accepted types such as "a text such as 'crop'" or "a list of texts"."""
    words = []
    for hint in hints:
        plain = _plain(hint)
        if plain is Sequence:
            words.append(f"a list of {_NAMES.get(_alternatives(get_args(hint)[0])[0], ('', 'values'))[1]}")
        elif plain is Mapping:
            words.append("a dictionary such as {'name': ...}")
        elif plain is os.PathLike:
            words = [*(word for word in words if word != _NAMES[str][0]), "the path of a file or folder"]
        elif plain is not type(None):
            words.append(_NAMES[plain][0] if plain in _NAMES else plain.__name__)
    text = " or ".join(words)
    example = default not in (None, True, False, inspect.Parameter.empty)
    return f"{text} such as {default!r}" if example else text
