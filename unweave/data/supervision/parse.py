"""The language of supervision: what a method is told beside the images, said in one line.

    none
    labels(n=100, factors=['shape'], noise=0.1, bins=5, permute=True)
    pairs(k=1)   pairs(k=(1, 3))   pairs(k='uniform', share=['shape'])   pairs(change=['posX', 'posY'])
    pairs(file='pairs.csv')
    groups(by=['shape'], size=4)
    match(content=['shape', 'scale'], style=['posX', 'posY'])
    triplets(by=['shape'])
    rank(factor='scale')
    clips(length=8, stride=2)

The same words serve in Python, on the command line and in a run's config. Reading them gives one of the tuples
of `kinds.py`, factors as positions in the data set; `samplers.py` draws what they say.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from unweave.data.callspec import parse_call
from unweave.data.dataset import Dataset
from unweave.data.supervision.labels import most_labels
from unweave.data.supervision.specs import (
    SUPERVISION_KINDS,
    ChangedPairs,
    Clips,
    FilePairs,
    Groups,
    Labels,
    Match,
    NoSupervision,
    Rank,
    SharedPairs,
    Supervision,
    Triplets,
    can_change,
    supervision_hint,
)
from unweave.errors import UserError, check_choice

RULES = ("paper", "dlib")


class _Call(NamedTuple):
    """A text being read."""

    text: str
    data: Dataset
    options: dict[str, object]

    def refuse(self, option: str, accepted: str) -> UserError:
        said = (
            f"{option}={self.options[option]!r} is not accepted" if option in self.options else f"{option} is missing"
        )
        return UserError(f"supervision={self.text!r}: {said}; give {accepted}")

    def factors(self, option: str, default: tuple[int, ...] | None = None) -> tuple[int, ...]:
        """The positions of the factors named by this option."""
        value, names = self.options.get(option), self.data.factor_names
        if value is None and default is not None:
            return default
        listed = [value] if isinstance(value, str) else value
        if not isinstance(listed, list | tuple) or not listed or len(set(map(str, listed))) < len(listed):
            raise self.refuse(option, f"a list of factor names such as {list(names[:1])}")
        for name in listed:
            if name not in names and (why := self.data.origin.source_info.excluded_columns.get(str(name))):
                raise UserError(f"supervision={self.text!r}: {_fault(str(name), why)}; {_other_columns(names)}")
            check_choice("factor", str(name), names, context=f"supervision={self.text!r}")
        return tuple(names.index(name) for name in listed)

    def integer(self, option: str, default: int, low: int, high: int) -> int:
        value = self.options.get(option, default)
        if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
            raise self.refuse(option, f"an integer from {low} to {high}")
        return value

    def flag(self, option: str) -> bool:
        value = self.options.get(option, False)
        if not isinstance(value, bool):
            raise self.refuse(option, "True or False")
        return value


def _labels(call: _Call) -> Labels:
    sizes = call.data.factor_sizes
    factors = call.factors("factors", tuple(range(len(sizes))))
    if not factors:
        none = f"supervision={call.text!r} needs factors, of which data {call.data.name!r} has none"
        raise UserError(none + _why_none(call.data))
    noise = call.options.get("noise", 0.0)
    if isinstance(noise, bool) or not isinstance(noise, int | float) or not 0 <= noise <= 1:
        raise call.refuse("noise", "a share from 0 to 1")
    bins = call.integer("bins", 2, 2, 2**31) if call.options.get("bins") is not None else 0
    seed = call.integer("seed", 0, 0, 2**62) if call.options.get("seed") is not None else None
    n, balanced = _label_count(call, factors), call.flag("balanced")
    if balanced and (len(factors) > 1 or n % sizes[factors[0]]):
        classes = sizes[factors[0]]
        raise call.refuse("balanced", f"it with one factor and with n a multiple of its classes ({classes} here)")
    return Labels(n, factors, float(noise), bins, call.flag("permute"), balanced, seed)


def _why_none(data: Dataset) -> str:
    """What is wrong with the columns of a table if all were left out, else how to give one; and what is accepted."""
    left_out = data.origin.source_info.excluded_columns
    if not left_out:
        return "; give --factors, a .csv with one row a picture"
    said = ", and ".join(_fault(name, why) for name, why in left_out.items())
    return f": {said}; give a column with two classes or more"


def _fault(column: str, why: str) -> str:
    """ "column 'kind' has one class only (always 'cat')" """
    if why.startswith("always"):
        return f"column {column!r} has one class only ({why})"
    return f"column {column!r} has {why}" if why.startswith("no ") else f"column {column!r} is no factor ({why})"


def _other_columns(names: Sequence[str]) -> str:
    return f"use one of {', '.join(names)}" if names else "give a column with two classes or more"


def _label_count(call: _Call, factors: tuple[int, ...]) -> int:
    """How many labels are asked for; the data's size is all there are, also where some observations have none."""
    size, n = call.data.size, call.options.get("n")
    if n is None:
        return size
    count = max(1, round(n * size)) if isinstance(n, float) and 0 < n <= 1 else n
    most = most_labels(call.data, factors)
    if isinstance(count, bool) or not isinstance(count, int) or not (1 <= count <= most or count == size):
        also = "or a fraction above 0 and up to 1.0" if most == size else "as many as have labels"
        raise call.refuse("n", f"an integer from 1 to {most}, {also}")
    return count


def _listed(call: _Call) -> FilePairs:
    file, fingerprint = call.options["file"], call.options.get("fingerprint")
    if not isinstance(file, str) or not file:
        raise call.refuse("file", "the path of a .csv with two file names a row, in quotes")
    if others := [name for name in call.options if name not in ("file", "fingerprint")]:
        raise UserError(f"supervision={call.text!r} names both file and {others[0]}; a file lists its pairs by itself")
    return FilePairs(file, None if fingerprint is None else str(fingerprint))


def _pairs(call: _Call) -> ChangedPairs | SharedPairs | FilePairs:
    data, options = call.data, call.options
    if "file" in options:
        return _listed(call)
    rule = options.get("rule", "paper")
    if rule not in RULES:
        raise call.refuse("rule", "'paper' or 'dlib'")
    if "change" in options and "share" in options:
        raise UserError(f"supervision={call.text!r} names both change and share; give one of them")
    movable = tuple(i for i, size in enumerate(data.factor_sizes) if size > 1)
    shared = call.factors("share", ())
    if shared and options.get("k") is None:
        return SharedPairs(shared)
    if not can_change(data):
        raise UserError(
            f"supervision={call.text!r} needs a grid of factors, which data {data.name!r} is not; "
            f"{supervision_hint(['pair'], data)}, or a grid such as data 'sprites'"
        )
    factors = call.factors("change", tuple(i for i in movable if i not in shared))
    if still := [data.factor_names[i] for i in factors if i not in movable]:
        raise call.refuse("change", f"factors with several values, which {still[0]!r} has not")
    if not factors:
        raise call.refuse("share", "fewer factors: nothing is left to change")
    default = len(factors) if "change" in options else None
    return ChangedPairs(
        *_read_k(call, default, len(factors), all_of_them=len(factors) == len(movable)), factors, str(rule)
    )


def _read_k(call: _Call, default: int | None, most: int, *, all_of_them: bool) -> tuple[int, int]:
    """The smallest and the largest number of changes; "uniform" never changes every factor at once."""
    k = call.options.get("k", default)
    highest = most - 1 if all_of_them else most
    if k == "uniform" and highest >= 1:
        return 1, highest
    ends = k if isinstance(k, list | tuple) and len(k) == 2 else (k, k)
    whole = all(isinstance(end, int) and not isinstance(end, bool) for end in ends)
    if not whole or not 1 <= ends[0] <= ends[1] <= most:  # type: ignore[operator]
        also = f", a range such as (1, {most}) or 'uniform'" if most > 1 else ""
        raise call.refuse("k", f"an integer from 1 to {most}{also}")
    return ends[0], ends[1]  # type: ignore[return-value]


def _groups(call: _Call) -> Groups:
    return Groups(call.factors("by"), call.integer("size", 2, 1, 4096), call.flag("distinct"))


def _match(call: _Call) -> Match:
    content = call.factors("content")
    movable = (i for i, size in enumerate(call.data.factor_sizes) if size > 1)
    style = call.factors("style", tuple(i for i in movable if i not in content))
    if not style:
        raise call.refuse("content", "fewer factors: none is left for the style")
    if twice := set(content) & set(style):
        raise call.refuse("style", f"no factor of the content ({call.data.factor_names[min(twice)]!r} is one)")
    return Match(content, style)


def _rank(call: _Call) -> Rank:
    found = call.factors("factor")
    if len(found) != 1 or call.data.factor_sizes[found[0]] < 2:
        raise call.refuse("factor", "one factor with several values")
    return Rank(found[0])


def _clips(call: _Call) -> Clips:
    frames = call.data.frames
    if frames < 2:
        raise UserError(f"supervision={call.text!r} needs videos, which data {call.data.name!r} is not; try 'clips'")
    length = call.integer("length", min(8, frames), 2, frames)
    return Clips(length, call.integer("stride", 1, 1, (frames - 1) // (length - 1)))


READERS: dict[str, Callable[[_Call], Supervision]] = {
    "none": lambda call: NoSupervision(),
    "labels": _labels,
    "pairs": _pairs,
    "groups": _groups,
    "match": _match,
    "triplets": lambda call: Triplets(call.factors("by")),
    "rank": _rank,
    "clips": _clips,
}


def read_supervision(text: str, data: Dataset) -> Supervision:
    """What the text says about this data set; raises with one line where it makes no sense there."""
    kind, options = parse_call(text, "supervision=")
    check_choice("supervision", kind, SUPERVISION_KINDS)
    for option in options:
        check_choice("option", option, SUPERVISION_KINDS[kind].options, context=f"supervision {kind!r}")
    return READERS[kind](_Call(text, data, options))
