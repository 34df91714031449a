"""The language of graphs: which variables a model has, and what each one depends on in the encoder and the decoder.

    q(r|x) q(l|x) q(i|x) q(s|l,i); p(x|r,l,i,s); labels: i, l; r: normal(10), s: normal(10)

Clauses are separated by semicolons: factors q(variable|parents) of the encoder and p(variable|parents) of the decoder,
`labels:` with the variables that are labelled, in the order of the labelled factors, and the distribution of a
variable, `normal(size)` or `classes(count)`. x is the image. Without its number a Gaussian has the size it is told,
and a labelled variable, which need not be declared, has as many classes as its factor. A variable without a p of its
own has the standard prior: N(0, 1), or equal chances.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from unweave.errors import UserError

IMAGE = "x"
EXAMPLE = "q(y|x) q(z|x,y); p(x|y,z); labels: y; z: normal(10)"
_NAME = r"[A-Za-z]\w*"
_FACTOR = re.compile(rf"([qp])\s*\(\s*({_NAME})\s*(?:\|([^()|;:]*))?\)", re.ASCII)
_KIND = re.compile(rf"({_NAME})\s*:\s*(normal|classes)\s*(?:\(\s*(\d{{1,6}})\s*\))?", re.ASCII)

Parents = dict[str, tuple[str, ...]]


class Variable(NamedTuple):
    """A latent variable; a Gaussian has `size` coordinates, a categorical one as many classes."""

    name: str
    size: int
    classes: bool
    label: int | None  # which of the labels is its; None: none is
    encoder: tuple[str, ...]  # what q conditions it on
    decoder: tuple[str, ...]  # what p conditions it on; () is the standard prior


class GraphicalModelSpec(NamedTuple):
    """A checked graph."""

    variables: tuple[Variable, ...]  # in the order of the q factors
    order: tuple[str, ...]  # parents in q before their children
    image: tuple[str, ...]  # what p conditions x on
    learned: tuple[str, ...]  # variables with a prior of their own, parents in p before their children

    def variable(self, name: str) -> Variable:
        return next(v for v in self.variables if v.name == name)

    @property
    def labelled(self) -> tuple[Variable, ...]:
        """In the order of the labels."""
        found = (v for v in self.variables if v.label is not None)
        return tuple(sorted(found, key=lambda v: v.label or 0))

    def descendants(self, name: str) -> set[str]:
        """The variables whose distribution in q depends on this one, at any remove."""
        found: set[str] = set()
        for other in self.order:
            if found.union((name,)) & set(self.variable(other).encoder):
                found.add(other)
        return found


class _Words(NamedTuple):
    """What a text says, before it is known to make sense."""

    encoder: Parents
    decoder: Parents
    kinds: dict[str, tuple[str, int | None]]
    labels: tuple[str, ...]


def read_graph(text: str, labels: Sequence[int], latents: int) -> GraphicalModelSpec:
    """The graph in the text, on data with so many classes of each labelled factor; raises one line where it is wrong.

    `latents` is the size of a Gaussian without a number.
    """
    words = _read(text)
    _check_names(words)
    order = _sorted("q", words.encoder)
    learned = tuple(name for name in _sorted("p", words.decoder) if name != IMAGE and words.decoder[name])
    _check_labels(words.labels, labels)
    variables = tuple(_variable(name, words, labels, latents) for name in words.encoder)
    return GraphicalModelSpec(variables, order, words.decoder[IMAGE], learned)


def _read(text: str) -> _Words:
    words, labelled = _Words({}, {}, {}, ()), False
    for clause in filter(None, (part.strip() for part in " ".join(text.split()).split(";"))):
        if clause.split(":")[0].strip() == "labels" and ":" in clause:
            if labelled:
                raise UserError("graph: labels are named twice; write one clause such as labels: i, l")
            words, labelled = words._replace(labels=_names(clause.split(":", 1)[1], clause)), True
        elif ":" in clause:
            _read_kinds(clause, words)
        else:
            _read_factors(clause, words)
    return words


def _read_factors(clause: str, words: _Words) -> None:
    if rest := _FACTOR.sub(" ", clause).replace(",", " ").strip():
        raise UserError(f"graph: '{rest}' is not understood; write it like '{EXAMPLE}'")
    for side, name, given in _FACTOR.findall(clause):
        factors = words.encoder if side == "q" else words.decoder
        if name in factors:
            raise UserError(f"graph: {side}({name}|...) is there twice; give each variable one factor")
        factors[name] = _names(given, f"{side}({name}|{given})") if given.strip() else ()


def _read_kinds(clause: str, words: _Words) -> None:
    for part in clause.split(","):
        match = _KIND.fullmatch(part.strip())
        if not match:
            raise UserError(f"graph: '{part.strip()}' is not understood; write z: normal(10), or y: classes(4)")
        name, kind, number = match.groups()
        if name in words.kinds:
            raise UserError(f"graph: '{name}' is declared twice; give it one distribution")
        words.kinds[name] = (kind, int(number) if number else None)


def _names(text: str, where: str) -> tuple[str, ...]:
    names = tuple(name.strip() for name in text.split(","))
    for name in names:
        if not re.fullmatch(_NAME, name, re.ASCII):
            raise UserError(f"graph: '{name}' in '{where}' is no name of a variable; use letters, digits and _")
    if len(set(names)) < len(names):
        raise UserError(f"graph: '{where}' names a variable twice; name each once")
    return names


def _check_names(words: _Words) -> None:
    known = tuple(words.encoder)
    for name in (IMAGE, "labels"):
        if name in known:
            raise UserError(f"graph: q({name}|...) cannot be; '{name}' is no variable to infer, give it another name")
    if not words.decoder.get(IMAGE):
        raise UserError("graph: nothing generates x; write p(x|...) with at least one variable")
    if not any(IMAGE in parents for parents in words.encoder.values()):
        raise UserError("graph: nothing is inferred from x; write q(...|x) for at least one variable")
    _check_known("q", words.encoder, (*known, IMAGE))
    _check_known("p", words.decoder, known)
    for where, names in (
        ("labels", words.labels),
        ("distributions", tuple(words.kinds)),
        ("p factors", tuple(words.decoder)),
    ):
        for name in names:
            if name not in known and not (name == IMAGE and where == "p factors"):
                raise UserError(f"graph: {where} name '{name}', which has no q; the variables are {', '.join(known)}")


def _check_known(side: str, factors: Parents, known: tuple[str, ...]) -> None:
    for name, parents in factors.items():
        for parent in parents:
            if parent not in known:
                where = f"{side}({name}|{','.join(parents)})"
                raise UserError(f"graph: '{parent}' in {where} is unknown; there it may be {', '.join(known)}")


def _sorted(side: str, factors: Mapping[str, tuple[str, ...]]) -> tuple[str, ...]:
    """Every name after its parents; as written where that leaves a choice."""
    order: list[str] = []
    while left := [name for name in factors if name not in order]:
        ready = [name for name in left if not set(factors[name]) & set(left)]
        if not ready:
            raise UserError(f"graph: the {side} factors of {', '.join(left)} go round in a circle; take one arrow out")
        order.append(ready[0])
    return tuple(order)


def _check_labels(names: tuple[str, ...], labels: Sequence[int]) -> None:
    if not names:
        raise UserError("graph: no variable is labelled; name them in the order of the labels, such as labels: y")
    if len(names) != len(labels):
        raise UserError(
            f"graph: labels names {len(names)} ({', '.join(names)}) but the number of labelled factors is "
            f"{len(labels)}; name one variable for each factor of supervision=\"labels(n=100, factors=['NAME', ...])\""
        )


def _variable(name: str, words: _Words, labels: Sequence[int], latents: int) -> Variable:
    label = words.labels.index(name) if name in words.labels else None
    kind, size = words.kinds.get(name, ("" if label is None else "classes", None))
    if not kind:
        raise UserError(f"graph: '{name}' has no distribution; write {name}: normal(10), or {name}: classes(4)")
    if label is not None:
        if kind != "classes" or size not in (None, labels[label]):
            raise UserError(
                f"graph: '{name}' is labelled with {labels[label]} classes but declared {kind}"
                f"{'' if size is None else f'({size})'}; write {name}: classes({labels[label]}), or leave it out"
            )
        size = labels[label]
    if kind == "classes" and size is None:
        raise UserError(f"graph: '{name}: classes' needs a number, as no label gives it; write {name}: classes(4)")
    size, least = latents if size is None else size, 2 if kind == "classes" and label is None else 1
    if size < least:
        raise UserError(f"graph: '{name}: {kind}({size})' is too small; use {least} or more")
    decoder = words.decoder.get(name, ())
    return Variable(name, size, kind == "classes", label, words.encoder[name], decoder)
