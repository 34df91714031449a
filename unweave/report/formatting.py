"""Format numbers and names for people to read."""

import math
import sys
from collections.abc import Sequence

from unweave.methods import METHODS
from unweave.metrics import METRICS

NARROW = "\N{NARROW NO-BREAK SPACE}"
DASH = "\N{EN DASH}"
MINUS = "\N{MINUS SIGN}"


def format_number(value: float, digits: int = 2) -> str:
    """Format with fixed digits and a true minus; a number that is not finite is a dash."""
    if not math.isfinite(value):
        return DASH
    text = f"{value:,.{digits}f}"
    return text.replace("-", MINUS) if float(text.replace(",", "")) else f"{0:.{digits}f}"


def short(value: float) -> str:
    """Format with about three significant digits, for axes and tables."""
    if not math.isfinite(value):
        return DASH
    if value and (abs(value) < 0.001 or abs(value) >= 1e6):
        return f"{value:.2g}".replace("-", MINUS)
    digits = max(0, 2 - math.floor(math.log10(abs(value)))) if value else 0
    text = format_number(value, digits)
    return text.rstrip("0").rstrip(".") if "." in text else text


def percent(share: float) -> str:
    return f"{100 * share:.0f}{NARROW}%" if math.isfinite(share) else DASH


def hundredths(value: float) -> str:
    return format_number(100 * value, 0)


def join_words(words: Sequence[str], last: str = "and") -> str:
    """Join as "one, two and three"."""
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} {last} {words[-1]}" if words else ""


def pretty(name: str) -> str:
    return name.replace("_", " ")


def method_title(name: str) -> str:
    """Return the name of a method as papers write it: the start of the first line of its module."""
    return module_summary(name)[0] or name


def module_summary(name: str) -> tuple[str, str]:
    """Return both sides of the colon in the first line of the method's module."""
    text = (sys.modules[METHODS[name].__module__].__doc__ or "") if name in METHODS else ""
    title, _, about = text.partition("\n")[0].partition(": ")
    return title.strip(), about.strip().rstrip(".")


def short_title(score: str) -> str:
    """Return a short name of a score: "MIG" of "Mutual information gap (MIG)"."""
    name, _, part = score.partition(".")
    if name not in METRICS:
        return pretty(score)
    title = METRICS[name].title
    acronym = title[title.find("(") + 1 : -1] if title.endswith(")") else title
    return f"{acronym}: {pretty(part)}" if part else acronym
