"""The words of the language of supervision: what each means and gives, and whether a method is served by it.

`supervision.py` reads texts of the language into the classes here.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from unweave.contract import UNSUPERVISED_FIELDS
from unweave.data.callspec import parse_call
from unweave.data.dataset import Dataset
from unweave.data.user.pair_lists import read_rows
from unweave.errors import UserError, check_choice


class SupervisionKind(NamedTuple):
    """A word of the language."""

    batch_fields: tuple[str, ...]  # batch fields
    options: tuple[str, ...]


SUPERVISION_KINDS = {
    "none": SupervisionKind((), ()),
    "labels": SupervisionKind(("labelled", "labels"), ("n", "factors", "noise", "bins", "permute", "balanced", "seed")),
    "pairs": SupervisionKind(("pair", "changed"), ("k", "change", "share", "rule", "file", "fingerprint")),
    "groups": SupervisionKind(("groups", "group_id"), ("by", "size", "distinct")),
    "match": SupervisionKind(("pair", "shared"), ("content", "style")),
    "triplets": SupervisionKind(("positive", "negative"), ("by",)),
    "rank": SupervisionKind(("order",), ("factor",)),
    "clips": SupervisionKind(("clips",), ("length", "stride")),
}


BY_FILE = {  # what may be told of a folder without factors, and by which option of the command line
    "shared": ("--pairs", "two file names and content or style, what the two share,"),
    "pair": ("--pairs", "two file names"),
    "groups": ("--groups", "a file name and a group name"),
    "labels": ("--factors", "a file name and its labels"),
}


class NoSupervision(NamedTuple):
    """Images alone."""


class Labels(NamedTuple):
    """`n` observations are labelled."""

    n: int
    factors: tuple[int, ...]
    noise: float = 0.0  # the share of labels that are replaced by a random class
    bins: int = 0  # classes a factor is cut down to; 0 is as it is
    permute: bool = False  # the order of the classes is lost
    balanced: bool = False  # the same number of every class
    seed: int | None = None  # whose labelled observations; None is the run's


class ChangedPairs(NamedTuple):
    """Pairs that differ in `low` to `high` of these factors and share all the others."""

    low: int
    high: int
    factors: tuple[int, ...]
    rule: str = "paper"


class SharedPairs(NamedTuple):
    """Pairs that share these factors and may differ in everything else."""

    by: tuple[int, ...]


class FilePairs(NamedTuple):
    """The pairs that a file lists, of a folder of pictures."""

    file: str
    fingerprint: str | None = None  # what the file must still hold


class Groups(NamedTuple):
    """Sets of observations that share these factors."""

    by: tuple[int, ...]
    size: int
    distinct: bool = False  # no two groups of a batch are the same one


class Match(NamedTuple):
    """Pairs that share either the content or the style."""

    content: tuple[int, ...]
    style: tuple[int, ...]


class Triplets(NamedTuple):
    """An observation, another one that shares these factors, and one that does not."""

    by: tuple[int, ...]


class Rank(NamedTuple):
    """Which of two observations has more of this factor."""

    factor: int


class Clips(NamedTuple):
    """Every `stride`-th frame of a video, `length` of them."""

    length: int
    stride: int


Supervision = NoSupervision | Labels | ChangedPairs | SharedPairs | FilePairs | Groups | Match | Triplets | Rank | Clips


def default_supervision(needs: Sequence[str]) -> str:
    """What is taken when nothing is said: the weakest that fits, where no factor has to be named for it."""
    wanted = {field for field in needs if field not in UNSUPERVISED_FIELDS}
    return "pairs(k=1)" if wanted and wanted <= set(SUPERVISION_KINDS["pairs"].batch_fields) else "none"


def example_supervision(needs: Sequence[str], data: Dataset) -> str:
    """A text that gives a method what it needs."""
    name = data.factor_names[0] if data.factor_names else "NAME"
    texts = {
        "none": "none",
        "labels": f"labels(n={min(100, data.size)})",
        "pairs": "pairs(k=1)" if can_change(data) else f"pairs(share=[{name!r}])",
        "groups": f"groups(by=[{name!r}], size=2)",
        "match": f"match(content=[{name!r}])",
        "triplets": f"triplets(by=[{name!r}])",
        "rank": f"rank(factor={name!r})",
        "clips": f"clips(length={min(8, data.frames)})",
    }
    wanted = {field for field in needs if field not in UNSUPERVISED_FIELDS}
    return next((text for kind, text in texts.items() if wanted <= set(SUPERVISION_KINDS[kind].batch_fields)), "none")


def check_needs(text: str, needs: Sequence[str], data: Dataset) -> None:
    """Raises unless this supervision gives what the method needs, and the method needs what it gives."""
    kind, options = parse_call(text, "supervision=")
    check_choice("supervision", kind, SUPERVISION_KINDS)
    batch_fields = (
        _listed_fields(options["file"])
        if kind == "pairs" and "file" in options
        else SUPERVISION_KINDS[kind].batch_fields
    )
    wanted = [field for field in needs if field not in UNSUPERVISED_FIELDS]
    if not wanted and kind != "none":
        raise UserError(f"supervision={text!r} is given but the method needs only {', '.join(needs)}; leave it 'none'")
    if missing := [field for field in wanted if field not in batch_fields]:
        if missing == ["shared"] and "file" in options:
            raise UserError(
                f"pairs '{options['file']}' do not say what they share, which the method needs; "
                "give every row a third entry, content or style"
            )
        raise UserError(
            f"supervision={text!r} but the method needs {', '.join(missing)}; {supervision_hint(needs, data)}"
        )


def supervision_hint(needs: Sequence[str], data: Dataset) -> str:
    """How to give a method what it needs; where no factor can be named for it, by a file."""
    named = len(data.factor_names) > ("shared" in needs)  # a content, and something that is left for the style
    if named or not set(needs) & set(BY_FILE):
        return f"give e.g. supervision={example_supervision(needs, data)!r}"
    option, rows = next(BY_FILE[field] for field in BY_FILE if field in needs)
    return f"give {option}, a .csv with {rows} a row"


def _listed_fields(file: object) -> tuple[str, ...]:
    """What pairs of a file come with: nobody has counted what changes in them, but they may say what they share."""
    return ("pair", "shared") if isinstance(file, str) and read_rows("pairs", file).has_shared_column else ("pair",)


def can_change(data: Dataset) -> bool:
    """Whether a partner that differs in chosen factors always exists."""
    return data.grid or data.partners
