"""Parse texts of supervision, and compare what they give with what a method needs.

The same texts are used in Python, on the command line and in the config.json of a run. Parsing gives an instance of
one of the kinds of supervision.
"""

from collections.abc import Sequence
from dataclasses import replace

from unweave.contract import UNSUPERVISED_FIELDS
from unweave.data.callspec import parse_call
from unweave.data.dataset import Dataset
from unweave.data.supervision import SUPERVISION_KINDS
from unweave.data.supervision.kind import Call, Supervision
from unweave.errors import UserError, check_choice


def parse_supervision(text: str | Supervision, data: Dataset) -> Supervision:
    """Return the supervision that a text describes for the data; an instance is returned unchanged."""
    if isinstance(text, Supervision):
        return text
    name, options = parse_call(text, "supervision")
    check_choice("supervision", name, dict.fromkeys(kind.name for kind in SUPERVISION_KINDS))
    kinds = [kind for kind in SUPERVISION_KINDS if kind.name == name]
    keywords = dict.fromkeys(keyword for kind in kinds for keyword in kind.keywords)
    for option in options:
        check_choice("option", option, keywords, context=f"supervision {name!r}")
    parsed = next(kind for kind in kinds if kind.matches(options)).parse(Call(text, data, options))
    return parsed if parsed.text else replace(parsed, text=text)


def explain(text: str | Supervision, data: Dataset) -> str:
    """Return the meaning of a text of supervision for a data set in one or two sentences."""
    return parse_supervision(text, data).explain(data)


def default_supervision(needs: Sequence[str]) -> str:
    """Return the text to use for a method with these needs if none is given."""
    return next((kind.default for kind in _kinds_for(needs) if kind.default), "none")


def example_supervision(needs: Sequence[str], data: Dataset) -> str:
    """Return a text that gives a method what it needs on these data; "" if there is none."""
    return next((text for kind in _kinds_for(needs) if (text := kind.example(data))), "")


def check_needs(supervision: Supervision, needs: Sequence[str], data: Dataset) -> None:
    """Raise unless the supervision gives what the method needs, and the method needs what it gives."""
    needed = _supervised_fields(needs)
    if not needed and supervision.batch_fields:
        message = f"supervision={supervision.text!r} is not used: the method needs only {', '.join(needs)}; use 'none'"
        raise UserError(message, argument="supervision", value=supervision.text, accepted="none")
    if missing := needed and [field for field in needed if field not in supervision.provided_fields]:
        possible = set(missing) <= set(supervision.batch_fields)  # but not by this instance
        hint = f"give {supervision.file_option}" if possible else _hint(needs, data)
        message = f"supervision={supervision.text!r} does not give {', '.join(missing)}, which the method needs; {hint}"
        raise UserError(message, argument="supervision", value=supervision.text, accepted=hint)


def _hint(needs: Sequence[str], data: Dataset) -> str:
    """Return how to give a method what it needs: by a text, or by a file if the data have too few factors."""
    if example := example_supervision(needs, data):
        return f"use e.g. supervision={example!r}"
    options = [f"give {kind.file_option}" for kind in _kinds_for(needs) if kind.file_option]
    return next(iter(options), "use other data")


def _supervised_fields(needs: Sequence[str]) -> list[str]:
    return [field for field in needs if field not in UNSUPERVISED_FIELDS]


def _kinds_for(needs: Sequence[str]) -> list[type[Supervision]]:
    """Return the kinds that may give all of these fields."""
    needed = set(_supervised_fields(needs))
    return [kind for kind in SUPERVISION_KINDS if needed and needed <= set(kind.batch_fields)]
