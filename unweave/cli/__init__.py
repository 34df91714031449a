"""The command line: parses arguments and calls the library."""

import shlex
import unicodedata
from typing import Any

from rich.console import Console
from rich.text import Text


class PlainConsole(Console):
    """A console that prints text as it is, so that paths and names of users need no escaping.

    Square brackets are no markup and `:name:` is no emoji. Control characters are shown as escapes such as `\\x1b`.
    Lines are not wrapped, so that commands can be copied; tables are. Use `bold` and `Text` for styles.
    """

    def __init__(self, **options: Any) -> None:
        super().__init__(markup=False, emoji=False, highlight=False, **options)

    def render_str(self, text: str, **options: Any) -> Text:
        return super().render_str(printable(text), **options)

    def print(self, *objects: Any, **options: Any) -> None:
        lines = all(isinstance(shown, str | Text) for shown in objects)
        super().print(*objects, **{"soft_wrap": lines, **options})


out_console = PlainConsole()
error_console = PlainConsole(stderr=True)


def printable(text: object) -> str:
    """Return the text with escapes for control characters, and for bytes of file names that are not UTF-8."""
    return "".join(_escaped(sign) if unicodedata.category(sign) in ("Cc", "Cs") else sign for sign in str(text))


def _escaped(sign: str) -> str:
    if 0xDC80 <= ord(sign) <= 0xDCFF:  # a byte of a file name that is not UTF-8
        return f"\\x{ord(sign) - 0xDC00:02x}"
    return sign if sign in "\n\t" else sign.encode("unicode_escape").decode()


def bold(text: object) -> Text:
    return Text(printable(text), "bold")


def shell_quote(text: object) -> str:
    """Quote a word for a shell; one with control characters as $'...', in which they can be printed."""
    word = str(text)
    if printable(word) == word and "\n" not in word:
        return shlex.quote(word)
    escaped = printable(word.replace("\\", "\\\\").replace("'", "\\'")).replace("\n", "\\n").replace("\t", "\\t")
    return f"$'{escaped}'"
