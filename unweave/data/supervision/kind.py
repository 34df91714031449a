"""Interface of the kinds of supervision, and the reader of their options."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Self

from torch import Tensor

from unweave.contract import DataInfo
from unweave.data.dataset import Dataset
from unweave.data.supervision.grouping import Grouping, group_by, members_pool
from unweave.errors import UserError, check_choice, check_integer, invalid

if TYPE_CHECKING:
    from unweave.data.supervision.labelled_set import LabelledSet

Fields = dict[str, Tensor]


class Tables(NamedTuple):
    """Lookup tables for sampling batches; computed once, on the device of the data."""

    data: Dataset
    groups: tuple[Grouping, ...] = ()
    pool: Tensor | None = None  # the observations from which x is drawn; None: all
    lookup: Any = None  # further tables of some kinds


class Call(NamedTuple):
    """A text such as "groups(by=['shape'], size=2)" while it is parsed for a data set."""

    text: str
    data: Dataset
    options: dict[str, Any]

    @property
    def context(self) -> str:
        return f"supervision={self.text!r}"

    def error(self, option: str, accepted: str) -> UserError:
        if option in self.options:
            return invalid(option, self.options[option], accepted, context=self.context)
        message = f"{self.context}: {option} is missing; give {accepted}"
        return UserError(message, argument=option, accepted=accepted)

    def factors(self, option: str, default: tuple[int, ...] | None = None) -> tuple[int, ...]:
        """Return the positions of the factors that this option names."""
        value, names = self.options.get(option), self.data.factor_names
        if value is None and default is not None:
            return default
        listed = [value] if isinstance(value, str) else value
        if not isinstance(listed, list | tuple) or not listed or len(set(map(str, listed))) < len(listed):
            raise self.error(option, f"a list of different factor names such as {list(names[:1])}")
        for name in map(str, listed):
            if name not in names and (reason := self.data.origin.source_info.excluded_columns.get(name)):
                accepted = f"one of {', '.join(names)}" if names else "a column with two or more classes"
                message = f"{self.context}: column {name!r} is not a factor ({reason}); use {accepted}"
                raise UserError(message, argument=option, value=name, accepted=accepted)
            check_choice("factor", name, names, context=self.context)
        return tuple(names.index(name) for name in listed)

    def integer(self, option: str, default: int, low: int, high: int) -> int:
        value = self.options.get(option)
        return default if value is None else check_integer(option, value, low, high, context=self.context)

    def flag(self, option: str) -> bool:
        value = self.options.get(option, False)
        if not isinstance(value, bool):
            raise self.error(option, "True or False")
        return value


@dataclass(frozen=True)
class Supervision:
    """Base class of the kinds of supervision. An instance is a text parsed for a data set.

    The fields of an instance are the options, with factors as positions. A kind is a final subclass in its own file.
    It declares the class variables below and overrides the methods that apply to it.
    """

    name: ClassVar[str]  # in texts; kinds that share a name differ in their keywords, see `matches`
    syntax: ClassVar[str]  # a text of this kind
    meaning: ClassVar[str] = ""  # sentence with the names of fields in braces
    keywords: ClassVar[Mapping[str, str]] = {}  # keyword -> meaning
    batch_fields: ClassVar[tuple[str, ...]] = ()
    unit: ClassVar[str] = "images"  # what the batch size counts
    stream: ClassVar[str] = "pair"  # name of the random stream of `draw`
    default: ClassVar[str] = ""  # text to use if a method needs the fields of this kind and no text is given
    file_option: ClassVar[str] = ""  # how to give this supervision by a file on the command line
    min_factors: ClassVar[int] = 1  # that the data need
    example_data: ClassVar[str] = "sprites(size=8)"  # data set for which `syntax` is valid

    text: str = field(default="", compare=False, kw_only=True)  # as it was parsed
    shared: tuple[int, ...] = field(default_factory=tuple, kw_only=True)  # factors that are equal in a row: content
    style: tuple[int, ...] | None = field(default=None, kw_only=True)  # None: all factors that are not shared

    @classmethod
    def matches(cls, options: Mapping[str, Any]) -> bool:
        """Return True if a text with the name of this kind and these options is of this kind."""
        return True

    @classmethod
    def parse(cls, call: Call) -> Self:
        """Return the supervision that a call describes; raise if it is not valid for the data."""
        return cls()

    @classmethod
    def example(cls, data: Dataset) -> str:
        """Return a text of this kind for the data set; "" if there is none."""
        names = data.factor_names
        return cls.syntax.replace("'shape'", repr(names[0])) if len(names) >= cls.min_factors else ""

    @property
    def provided_fields(self) -> tuple[str, ...]:
        """Batch fields of this instance, which may be fewer than those of its kind."""
        return self.batch_fields

    def info(self, data: Dataset) -> DataInfo:
        """Return the description of the data and this supervision that the constructor of a method receives."""
        return data.info

    def explain(self, data: Dataset) -> str:
        """Return the meaning for the data in one or two sentences."""
        values = {name: names_of(data, v) if isinstance(v, tuple) else v for name, v in vars(self).items()}
        sentence = self.meaning.format(**values)
        if (pool := self.tables(data, 0).pool) is None:
            return sentence
        return f"{sentence} {len(pool)} of {data.size} observations are used; the others have no partner."

    def warnings(self, data: Dataset) -> list[str]:
        """Return properties of the data that the user may not expect, one line each."""
        return []

    def labelled_set(self, data: Dataset, seed: int) -> LabelledSet | None:
        """Return the labelled observations of a run with this seed; None if the supervision gives no labels."""
        return None

    def tables(self, data: Dataset, seed: int) -> Tables:
        """Return the tables for `draw`; `seed` is the seed of the run."""
        return Tables(data)

    def draw(self, tables: Tables, key: Tensor, plan: Fields, seed: Tensor | None) -> Fields:
        """Return the batch fields, images as indices, for the `x` in the plan.

        The draws are a function of the key, made of tensor operations only. In a fleet `seed` is the seed of each run.
        """
        return {}


def grouped_tables(data: Dataset, *shared: tuple[int, ...], size: int = 2) -> Tables:
    """Return tables of the groups that share each of these sets of factors; x is in groups of at least `size`."""
    groups = tuple(group_by(data, factors) for factors in shared)
    return Tables(data, groups, members_pool(data, groups, size))


def varying_factors(data: Dataset) -> tuple[int, ...]:
    return tuple(k for k, size in enumerate(data.factor_sizes) if size > 1)


def names_of(data: Dataset, factors: tuple[int, ...]) -> str:
    return ", ".join(data.factor_names[k] for k in factors)
