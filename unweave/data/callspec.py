"""Reading what a user types: call texts such as "sprites(size=32)" and the checks on their arguments."""

from __future__ import annotations

import ast
from collections.abc import Mapping

from unweave.errors import UserError


def parse_call(text: str, argument: str = "") -> tuple[str, dict[str, object]]:
    """The name and the options of a text such as "none", "sprites(size=32)" or "pairs(k='uniform')".

    Only literals are read and nothing is ever run. Errors name the `argument` it was given by.
    """
    like = "'pairs(k=1)'" if argument else "'sprites(size=32)'"
    wrong = UserError(f"cannot read {argument}{text!r}; write a name, or a name with options such as {like}")
    try:
        tree = ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError, MemoryError, RecursionError, AttributeError):
        raise wrong from None
    if isinstance(tree, ast.Name):
        return tree.id, {}
    if not (isinstance(tree, ast.Call) and isinstance(tree.func, ast.Name)):
        raise wrong
    if tree.args or any(keyword.arg is None for keyword in tree.keywords):
        raise UserError(f"{argument}{text!r}: write every option by name, such as {like}")
    return tree.func.id, _literals(f"{argument}{text!r}", tree.keywords)


def _literals(told: str, keywords: list[ast.keyword]) -> dict[str, object]:
    options: dict[str, object] = {}
    for keyword in keywords:
        name = str(keyword.arg)
        if name in options:
            raise UserError(f"{told}: option {name!r} is given twice")
        try:
            options[name] = ast.literal_eval(keyword.value)
        except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
            value = ast.unparse(keyword.value)
            raise UserError(f"{told}: {name}={value} is not a number, a quoted text or a list of them") from None
    return options


def call_text(name: str, options: Mapping[str, object]) -> str:
    """What `parse_call` reads back as this name and these options."""
    written = ", ".join(f"{option}={value!r}" for option, value in options.items())
    return f"{name}({written})" if written else name
