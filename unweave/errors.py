"""Errors and notices for users, and the checks of arguments that raise them.

The message is one line that names the argument, its value and what is accepted. The same three facts are attributes,
so that programs and tests need not read the sentence.
"""

import difflib
import functools
import math
import os
import signal
import warnings
from collections.abc import Callable, Hashable, Iterable, Mapping
from numbers import Integral
from pathlib import Path
from typing import Any, TypeVar

F = TypeVar("F", bound=Callable[..., Any])
T = TypeVar("T")
_SHOWN = 1000  # characters of a value in a message


class UserError(ValueError):
    """An error that the user can fix. Its text is one line.

    Parameters
    ----------
    message : the text
    argument : name of the argument or option that has to change; "" if the error is not about one
    value : the value that was given
    accepted : what is accepted, in words or as the list of choices
    """

    def __init__(
        self, message: str, *, argument: str = "", value: object = None, accepted: str | Iterable[object] = ""
    ) -> None:
        super().__init__(message)
        self.argument = argument
        self.value = value
        self.accepted = accepted if isinstance(accepted, str) else tuple(accepted)


class Interrupted(KeyboardInterrupt):
    """Training was stopped by a signal.

    Parameters
    ----------
    signum : number of the signal
    command : the command that resumes the training, or ""
    """

    def __init__(self, signum: int, command: str = "") -> None:
        resume = f"; resume with: {command}" if command else ""
        super().__init__(f"stopped by {signal.Signals(signum).name}{resume}")
        self.signum, self.command = signum, command

    @property
    def exit_code(self) -> int:
        return 128 + self.signum


class UserNotice(UserWarning):
    """A situation that the user may not have intended but does not have to fix. Its text is one line."""


class DataNotice(UserNotice):
    """A notice about the data of a run. The commands print it themselves, before they train."""


def use_current_names(given: Mapping[str, T], earlier_names: Mapping[str, str]) -> dict[str, T]:
    """Return the values by their current names; raise if one is given by its earlier name too."""
    for old, new in earlier_names.items():
        if old in given and new in given:
            raise invalid(old, given[old], f"left out, because '{new}', its current name, is given")
    return {earlier_names.get(name, name): value for name, value in given.items()}


def renamed_arguments(**names: str) -> Callable[[F], F]:
    """Accept earlier names of keyword arguments, with a DeprecationWarning: @renamed_arguments(old="new")."""

    def decorate(function: F) -> F:
        @functools.wraps(function)
        def call(*args: Any, **given: Any) -> Any:
            for old in names.keys() & given.keys():
                text = f"{function.__name__}: {old} is deprecated; use {names[old]}"
                warnings.warn(text, DeprecationWarning, stacklevel=2)
            return function(*args, **use_current_names(given, names))

        return call  # type: ignore[return-value]

    return decorate


def _shown(value: object) -> str:
    """Return the representation of a value, shortened to what fits into a message."""
    try:
        text = repr(value)
    except ValueError:  # an integer of thousands of digits
        return "a number of more digits than can be shown"
    return text if len(text) <= _SHOWN else f"{text[: _SHOWN // 2]}...{text[-1]}"


def invalid(argument: str, value: object, accepted: str, *, context: str = "", hint: str = "") -> UserError:
    """Return the error "`argument` must be `accepted`, got `value`", preceded by a context and followed by a hint."""
    text = (
        f"{context}: " * bool(context)
        + f"{argument} must be {accepted}, got {_shown(value)}"
        + f"; {hint}" * bool(hint)
    )
    return UserError(text, argument=argument, value=value, accepted=accepted)


def is_out_of_memory(error: BaseException) -> bool:
    """Return True for a failed allocation, including those of torch, which are RuntimeErrors without a class."""
    text = str(error).lower()
    known = ("allocate memory", "out of memory", "not enough memory", "storage size calculation overflowed")
    return isinstance(error, MemoryError) or (isinstance(error, RuntimeError) and any(part in text for part in known))


def check_choice(argument: str, value: Any, accepted: Iterable[str], *, context: str = "") -> Any:
    """Return the value if it is an accepted name; the error suggests the closest one and lists them all."""
    known = list(accepted)
    if isinstance(value, Hashable) and value in known:  # an array or a list is not a name
        return value
    near = difflib.get_close_matches(str(value), known, n=1, cutoff=0.5)
    hint = f"; did you mean {near[0]!r}?" if near else ";"
    listing = f"accepted: {', '.join(known)}" if known else "none is available"
    message = f"{context}: " * bool(context) + f"unknown {argument} {_shown(value)}{hint} {listing}"
    raise UserError(message, argument=argument, value=value, accepted=known)


def check_integer(argument: str, value: Any, low: int, high: int | None = None, *, context: str = "") -> int:
    """Return the value as an `int` if it is an integer in `low`..`high`; numpy integers are accepted, booleans not."""
    in_range = isinstance(value, Integral) and not isinstance(value, bool) and int(value) >= low
    if not in_range or (high is not None and int(value) > high):
        wanted = f"an integer >= {low}" if high is None else f"an integer from {low} to {high}"
        raise invalid(argument, value, wanted, context=context)
    return int(value)


def check_path(argument: str, value: Any, *, context: str = "") -> Path:
    """Return the absolute path that a text or a path names, with `~` as the home folder; the file need not exist."""
    if not isinstance(value, str | os.PathLike) or not isinstance(os.fspath(value), str) or not str(value):
        raise invalid(argument, value, "the path of a file or folder", context=context)
    try:
        path = Path(os.path.expanduser(value)).resolve()
        path.exists()
    except (OSError, ValueError, RuntimeError) as error:  # such as a null character, a name too long, a loop of links
        shown = text if len(text := str(value)) <= 200 else f"{text[:200]}..."
        reason = getattr(error, "strerror", None) or str(error)
        raise invalid(argument, shown, "a path that can be opened", context=context, hint=reason) from None
    return path


def to_integer(text: object) -> int | None:
    """Return the integer that a text of ASCII characters gives, or None; every option in text form is read by this."""
    try:
        return int(str(text)) if str(text).isascii() else None
    except ValueError:  # also for more digits than Python converts
        return None


def to_number(value: Any) -> float | None:
    """Return the finite number that a value or a text of ASCII characters gives, or None."""
    try:
        number = math.nan if isinstance(value, bool) or not str(value).isascii() else float(value)
    except (TypeError, ValueError, OverflowError, RuntimeError):  # RuntimeError: a tensor of several values
        return None
    return number if math.isfinite(number) else None
