"""Call texts such as "sprites(size=32)" or "pairs(k='uniform')": a name with options."""

import ast
from collections.abc import Mapping
from typing import Any

from unweave.errors import invalid, to_number


def parse_call(text: str, argument: str = "data") -> tuple[str, dict[str, Any]]:
    """Return the name and the options of a call text. Only literals are accepted; no code is run.

    `argument` is the name of the argument that contains the text, for errors.
    """
    example = "pairs(k=1)" if argument == "supervision" else "sprites(size=32)"
    invalid_text = invalid(argument, text, f"a name, or a name with options such as {example}")
    try:
        tree = ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError, MemoryError, RecursionError, AttributeError):
        raise invalid_text from None
    if isinstance(tree, ast.Name):
        return tree.id, {}
    if not (isinstance(tree, ast.Call) and isinstance(tree.func, ast.Name)) or tree.args:
        raise invalid_text
    options: dict[str, Any] = {}
    for keyword in tree.keywords:
        try:
            value = ast.literal_eval(keyword.value)
        except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
            raise invalid_text from None
        if keyword.arg is None or keyword.arg in options:
            raise invalid_text
        if isinstance(value, float) and to_number(value) is None:  # such as 1e999
            raise invalid(keyword.arg, value, "a finite number", context=f"{argument} {text!r}")
        options[keyword.arg] = value
    return tree.func.id, options


def call_text(name: str, options: Mapping[str, object]) -> str:
    """Return the text that `parse_call` reads as this name and these options."""
    arguments = ", ".join(f"{option}={value!r}" for option, value in options.items())
    return f"{name}({arguments})" if arguments else name
