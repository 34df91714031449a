"""Reading what a user types: call texts such as "sprites(size=32)" and the checks on their arguments."""

from __future__ import annotations

import ast
import difflib
from collections.abc import Iterable, Mapping

from unweave.contract import UserError


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


def check_name(what: str, name: str, accepted: Iterable[str]) -> None:
    """Raises unless the name is accepted; the message suggests the nearest one and lists them all."""
    known = list(accepted)
    if name in known:
        return
    near = difflib.get_close_matches(name, known, n=1, cutoff=0.5)
    hint = f"; did you mean {near[0]!r}?" if near else ""
    raise UserError(f"{what} {name!r} does not exist{hint} (there {_listing(known)})")


def _listing(names: list[str]) -> str:
    if not names:
        return "are none"
    return ("is " if len(names) == 1 else "are ") + ", ".join(names)


def check_integer(argument: str, value: object, low: int, high: int) -> int:
    """The value, if it is an integer in low..high."""
    if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
        raise UserError(f"{argument}={value!r} is not accepted; give an integer from {low} to {high}")
    return value
