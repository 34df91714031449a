"""Specification of a graphical model: its variables, and what each one depends on in the encoder and the decoder.

    q(r|x) q(l|x) q(i|x) q(s|l,i); p(x|r,l,i,s); labels: i, l; r: normal(10), s: normal(10)

Clauses are separated by semicolons: factors q(variable|parents) of the encoder and p(variable|parents) of the decoder,
`labels:` with the labelled variables, in the order of the labelled factors, and the distribution of a variable,
`normal(size)` or `classes(count)`. x is the image. The default size of a Gaussian is the setting `latents`. A labelled
variable need not be declared and has the classes of its factor. A variable without a factor p(...) has the standard
prior: N(0, 1), or equal probabilities.
"""

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
    label: int | None  # index of its label; None: unlabelled
    encoder: tuple[str, ...]  # its parents in q
    decoder: tuple[str, ...]  # its parents in p; () is the standard prior


class GraphicalModelSpec(NamedTuple):
    """A checked graph."""

    variables: tuple[Variable, ...]  # in the order of the q factors
    order: tuple[str, ...]  # parents in q before their children
    image: tuple[str, ...]  # parents of x in p
    learned: tuple[str, ...]  # variables with a learned prior, parents in p before their children

    def variable(self, name: str) -> Variable:
        return next(v for v in self.variables if v.name == name)

    @property
    def labelled(self) -> tuple[Variable, ...]:
        """The labelled variables, in the order of the labels."""
        found = (v for v in self.variables if v.label is not None)
        return tuple(sorted(found, key=lambda v: v.label or 0))

    def descendants(self, name: str) -> set[str]:
        """Return the variables whose distribution in q depends on this one, directly or not."""
        found: set[str] = set()
        for other in self.order:
            if found.union((name,)) & set(self.variable(other).encoder):
                found.add(other)
        return found


class _Words(NamedTuple):
    """A parsed text, before it is checked."""

    encoder: Parents
    decoder: Parents
    distributions: dict[str, tuple[str, int | None]]
    labels: tuple[str, ...]


def _error(message: str) -> UserError:
    return UserError(f"graph: {message}", argument="graph", accepted=f"a text like '{EXAMPLE}'")


def read_graph(text: str, labels: Sequence[int], latents: int) -> GraphicalModelSpec:
    """Parse and check a text, given the number of classes of each labelled factor.

    `latents` is the size of a Gaussian without a number.
    """
    words = _read(text)
    _check_names(words)
    order = _sorted("q", words.encoder)
    learned = tuple(name for name in _sorted("p", words.decoder) if name != IMAGE and words.decoder[name])
    if not words.labels:
        raise _error("no variable is labelled; name the labelled ones in the order of the labels, such as labels: y")
    if (count := len(words.labels)) != len(labels):
        raise _error(
            f"labels has {count} variables ({', '.join(words.labels)}) but there are {len(labels)} labelled factors; "
            "name one variable for each factor of supervision=\"labels(n=100, factors=['NAME', ...])\""
        )
    variables = tuple(_variable(name, words, labels, latents) for name in words.encoder)
    return GraphicalModelSpec(variables, order, words.decoder[IMAGE], learned)


def _read(text: str) -> _Words:
    words, labelled = _Words({}, {}, {}, ()), False
    for clause in filter(None, (part.strip() for part in " ".join(text.split()).split(";"))):
        if clause.split(":")[0].strip() == "labels" and ":" in clause:
            if labelled:
                raise _error("labels is given twice; write one clause such as labels: i, l")
            words, labelled = words._replace(labels=_names(clause.split(":", 1)[1], clause)), True
        elif ":" in clause:
            _read_distributions(clause, words)
        else:
            _read_factors(clause, words)
    return words


def _read_factors(clause: str, words: _Words) -> None:
    if rest := _FACTOR.sub(" ", clause).replace(",", " ").strip():
        raise _error(f"'{rest}' is not a valid clause; write it like '{EXAMPLE}'")
    for side, name, given in _FACTOR.findall(clause):
        factors = words.encoder if side == "q" else words.decoder
        if name in factors:
            raise _error(f"{side}({name}|...) is defined twice; define each factor once")
        factors[name] = _names(given, f"{side}({name}|{given})") if given.strip() else ()


def _read_distributions(clause: str, words: _Words) -> None:
    for part in clause.split(","):
        match = _KIND.fullmatch(part.strip())
        if not match:
            raise _error(f"'{part.strip()}' is not a distribution; write z: normal(10), or y: classes(4)")
        name, kind, number = match.groups()
        if name in words.distributions:
            raise _error(f"'{name}' is declared twice; declare it once")
        words.distributions[name] = (kind, int(number) if number else None)


def _names(text: str, where: str) -> tuple[str, ...]:
    names = tuple(name.strip() for name in text.split(","))
    for name in names:
        if not re.fullmatch(_NAME, name, re.ASCII):
            raise _error(f"'{name}' in '{where}' is not a valid name; use letters, digits and _")
    if len(set(names)) < len(names):
        raise _error(f"'{where}' names a variable twice; name each variable once")
    return names


def _check_names(words: _Words) -> None:
    known = tuple(words.encoder)
    for name in (IMAGE, "labels"):
        if name in known:
            raise _error(f"q({name}|...) is not allowed, as '{name}' is reserved; use another name")
    if not words.decoder.get(IMAGE):
        raise _error("x has no parents in p; write p(x|...) with at least one variable")
    if not any(IMAGE in parents for parents in words.encoder.values()):
        raise _error("no variable is inferred from x; write q(...|x) for at least one variable")
    _check_known("q", words.encoder, (*known, IMAGE))
    _check_known("p", words.decoder, known)
    for where, names in (
        ("labels", words.labels),
        ("distributions", tuple(words.distributions)),
        ("p factors", tuple(words.decoder)),
    ):
        for name in names:
            if name not in known and not (name == IMAGE and where == "p factors"):
                raise _error(f"{where}: '{name}' has no factor q; the variables are {', '.join(known)}")


def _check_known(side: str, factors: Parents, known: tuple[str, ...]) -> None:
    for name, parents in factors.items():
        for parent in parents:
            if parent not in known:
                where = f"{side}({name}|{','.join(parents)})"
                raise _error(f"unknown variable '{parent}' in {where}; accepted: {', '.join(known)}")


def _sorted(side: str, factors: Mapping[str, tuple[str, ...]]) -> tuple[str, ...]:
    """Return the names with parents before children, otherwise in the order of the text."""
    order: list[str] = []
    while left := [name for name in factors if name not in order]:
        ready = [name for name in left if not set(factors[name]) & set(left)]
        if not ready:
            raise _error(f"the {side} factors of {', '.join(left)} are a cycle; remove one dependency")
        order.append(ready[0])
    return tuple(order)


def _variable(name: str, words: _Words, labels: Sequence[int], latents: int) -> Variable:
    label = words.labels.index(name) if name in words.labels else None
    kind, size = words.distributions.get(name, ("" if label is None else "classes", None))
    if not kind:
        raise _error(f"'{name}' has no distribution; write {name}: normal(10), or {name}: classes(4)")
    if label is not None:
        if kind != "classes" or size not in (None, labels[label]):
            raise _error(
                f"'{name}' has labels of {labels[label]} classes but is declared {kind}"
                f"{'' if size is None else f'({size})'}; write {name}: classes({labels[label]}), or nothing"
            )
        size = labels[label]
    if kind == "classes" and size is None:
        raise _error(f"'{name}: classes' needs a number, as '{name}' is not labelled; write {name}: classes(4)")
    size, least = latents if size is None else size, 2 if kind == "classes" and label is None else 1
    if size < least:
        raise _error(f"'{name}: {kind}({size})' is too small; use {least} or more")
    decoder = words.decoder.get(name, ())
    return Variable(name, size, kind == "classes", label, words.encoder[name], decoder)
