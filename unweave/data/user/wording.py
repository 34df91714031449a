"""Parts of the sentences that describe user data."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from unicodedata import category

_ESCAPED = ("Cc", "Cs", "Zl", "Zp")  # control characters, surrogates (bytes that are not text), separators of lines


def printable(name: str) -> str:
    r"""Return a name as one line of text, with line breaks and bytes that are not text as escapes such as \n."""
    return "".join(_escaped(sign) if category(sign) in _ESCAPED else sign for sign in name)


def _escaped(sign: str) -> str:
    if 0xDC80 <= ord(sign) <= 0xDCFF:  # a byte of a file name that is not UTF-8
        return f"\\x{ord(sign) - 0xDC00:02x}"
    return sign.encode("unicode_escape").decode()


def display_path(path: Path) -> str:
    """Return the path relative to the current folder if it is inside it."""
    here = Path.cwd()
    return printable(str(path.relative_to(here) if path != here and path.is_relative_to(here) else path))


def count_text(count: int, one: str, many: str) -> str:
    """Return "1 file" or "2 files"."""
    return f"{count:,} {one if count == 1 else many}"


def counts_text(counts: Mapping[str, int]) -> str:
    """Return "3 PNG, 1 JPEG"."""
    return ", ".join(f"{count:,} {name}" for name, count in counts.items())


def first_names(names: Sequence[str], max_names: int = 3) -> str:
    """Return the first names and the number of the others."""
    more = f" and {len(names) - max_names:,} more" if len(names) > max_names else ""
    return ", ".join(map(printable, names[:max_names])) + more


def renamed_note(table: str, folder: str) -> str:
    """Say that rows name a folder that has another name, which is right if it was renamed or moved."""
    return f"rows of {table} name images in '{folder}', which is taken to be the folder of the data"
