"""The nouns everything else is written in: Method, Batch, Out, Representation.

A method is an ordinary `nn.Module` whose `forward` is the mathematics of one training step.
It is handed a batch, noise, hyper-parameters and the step number as tensors, and answers with
one loss per player. Who moves, with which optimizer, on which device, alone or among hundreds
of replicas, is the engine's business and appears nowhere in a method.

Shape letters used throughout: B batch, Z latents, C channels, H height, W width, K factors, L labelled factors,
G members of a group or frames of a clip.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any, ClassVar, NamedTuple, get_args, get_origin, get_type_hints

from torch import Tensor, nn

from unweave.errors import UserError


class HyperParam(NamedTuple):
    """What a user may know about one hyper-parameter: `beta: Annotated[Tensor, Knob(4.0, ...)]`."""

    default: float
    about: str
    paper: str = ""  # the values published work uses, in words
    low: float = 0.0  # smallest value accepted
    high: float = float("inf")


class Noise(NamedTuple):
    """A request for random numbers. Dimensions are "B", "Z" (the method's `latents`) or a number."""

    kind: str
    dims: tuple[str | int, ...]


def normal(*dims: str | int) -> Noise:
    return Noise("normal", dims)


def uniform(*dims: str | int) -> Noise:
    return Noise("uniform", dims)


class Batch(NamedTuple):
    """What a method may see. Only the fields in its `needs` are filled; the others are None.

    `x`, `x_other` and `x_index` are there without supervision. Of the others each kind of supervision gives its own
    (docs/guide/supervision.md). B counts rows: observations, pairs, triplets, groups or clips.
    """

    x: Tensor | None = None  # images [B, C, H, W] in 0..1
    x_other: Tensor | None = None  # an independent batch of the same size
    pair: Tensor | None = None  # pairs, match: partners of x that share some factors with it
    changed: Tensor | None = None  # pairs: in how many factors each pair differs [B], int64
    labels: Tensor | None = None  # labels: classes of the labelled factors of `labelled` [B, L], int64; -1 is unknown
    labelled: Tensor | None = None  # labels: images with known labels [B, C, H, W], independent of x
    groups: Tensor | None = None  # groups: images that share some factors [B, G, C, H, W], G of them in each
    group_id: Tensor | None = None  # groups: the number of each group [B], int64; equal where the factors are equal
    shared: Tensor | None = None  # match: what each pair shares [B], int64; 0 content, 1 style
    positive: Tensor | None = None  # triplets: others that share the factors of x
    negative: Tensor | None = None  # triplets: images that do not
    order: Tensor | None = None  # rank: sign of the factor of x less that of `x_other` [B], int64; -1, 0 or 1
    clips: Tensor | None = None  # clips: frames of one video each, in time [B, G, C, H, W]
    x_index: Tensor | None = None  # which observation of the data set each x is [B], int64


UNSUPERVISED_FIELDS = ("x", "x_other", "x_index")  # the fields that say nothing of the factors


def is_supervised(needs: Sequence[str]) -> bool:
    """Whether a method with these needs asks for more than images."""
    return any(field not in UNSUPERVISED_FIELDS for field in needs)


class Out(NamedTuple):
    """One step's answer: a scalar loss per player, scalars to log, new values of named buffers."""

    losses: dict[str, Tensor]
    logs: dict[str, Tensor]
    state: dict[str, Tensor] = {}


class DataInfo(NamedTuple):
    """All a method is told about its data: image shape (C, H, W), number of observations, form of the supervision."""

    shape: tuple[int, int, int]
    size: int
    labels: tuple[int, ...] = ()  # the number of classes of each labelled factor
    labelled: int = 0  # how many observations have labels
    members: int = 1  # observations in a group, frames in a clip
    groups: int = 0  # how many different groups there are
    factors: tuple[str, ...] = ()  # the names of the labelled factors
    supervision: str = ""  # the words that gave labels, for messages


class Part(NamedTuple):
    """Neighbouring coordinates of a code that mean one thing: content, style, the class."""

    name: str
    size: int
    classes: bool = False  # its coordinates are the probabilities of classes: they sum to one
    label: int | None = None  # of which label those classes are, where a method tells its labels apart
    follows: bool = False  # it is read off other parts, not off the image; see Representation.follow


class Representation(NamedTuple):
    """What everything after training needs of a model; arrays from elsewhere fit in here too."""

    encode: Callable[[Tensor], Tensor] | None  # images -> codes [B, Z]; None: the method has no encoder
    latents: int
    decode: Callable[[Tensor], Tensor] | None = None  # codes -> images in 0..1
    posterior: Callable[[Tensor], tuple[Tensor, Tensor]] | None = None  # images -> mean, logvar
    parts: tuple[Part, ...] = ()  # what the coordinates are, in order; () is one undivided code
    classify: Callable[[Tensor], tuple[Tensor, ...]] | None = None  # images -> probabilities [B, classes] by label
    encode_group: Callable[[Tensor], Tensor] | None = None  # groups [..., G, C, H, W] -> members' codes [..., G, Z]
    follow: Callable[[Tensor], Tensor] | None = None  # changed codes -> the same, parts that follow from others anew
    from_prior: Callable[[Tensor], Tensor] | None = None  # codes of N(0, 1) draws -> of a learned prior's draws
    cluster: Callable[[Tensor], Tensor] | None = None  # images -> probabilities of clusters nobody named [B, Y]

    def require(self, side: str) -> Callable[..., Any]:
        """Return the function of this name, such as "encode"; raise if the method does not have it."""
        function = getattr(self, side)
        if function is None:
            lacking = {"encode": "encoder", "decode": "decoder"}.get(side, f"'{side}' function")
            raise UserError(
                f"the method of this run has no {lacking}", argument="method", accepted=f"a method with {side}"
            )
        return function


class Method(nn.Module):
    """Interface of all methods: final classes derive from it directly and from nothing else."""

    class Hyper(NamedTuple):
        pass

    needs: tuple[str, ...] = ("x",)
    players: Mapping[
        str, tuple[str, ...]
    ]  # player -> the attributes (modules) it moves, or parts: "autoencoder.encoder"
    frozen: tuple[str, ...] = ()  # attributes nobody moves
    noise: Mapping[str, Noise] = {}
    phases: Mapping[str, tuple[str, ...]] = {}  # name -> who moves, each on a batch of its own; {} is all on one
    optimizer_defaults: ClassVar[Mapping[str, Mapping[str, Any]]] = {}  # the paper's optimizer settings by player
    next_stage: ClassVar[type[Method] | None] = None  # the next stage, built with previous=this method
    equation: ClassVar[str] = ""
    paper: ClassVar[str] = ""
    latents: int

    @staticmethod
    def check_hyper(hyper: Mapping[str, float]) -> None:
        """Raises where hyper-parameters do not go together; it is told those that stay as they are in training."""

    def forward(self, batch: Batch, noise: Mapping[str, Tensor], hyper: Any, step: Tensor) -> Out:
        """The players' losses. A method with phases also takes `phase: str = ""` and answers for who moves in it."""
        raise NotImplementedError

    def representation(self) -> Representation:
        """The trained model as the rest of the library sees it."""
        return self.autoencoder.representation()  # type: ignore[operator, union-attr]


def all_phases(method: Method) -> dict[str, tuple[str, ...]]:
    """Who moves, by the name of the phase, in order."""
    return dict(method.phases) or {"": tuple(method.players)}


def player_parameters(method: Method) -> dict[str, list[str]]:
    """The parameter names of each player; raises unless in every phase at most one player moves a parameter."""
    names = [name for name, _ in method.named_parameters()]
    owned = {player: _under(names, parts) for player, parts in method.players.items()}
    frozen = _under(names, method.frozen)
    for movers in all_phases(method).values():
        owner = dict.fromkeys(frozen, "frozen")
        for player in movers:
            for name in owned[player]:
                if name in owner:
                    raise TypeError(f"{name} belongs to both {owner[name]} and {player}")
                owner[name] = player
    for name in names:
        if name not in frozen and not any(name in mine for mine in owned.values()):
            raise TypeError(f"{name} belongs to no player of {type(method).__name__} and is not frozen")
    return owned


def _under(names: list[str], parts: tuple[str, ...]) -> list[str]:
    return [name for name in names if any(name == part or name.startswith(part + ".") for part in parts)]


def hyper_params(method: type[Method]) -> dict[str, HyperParam]:
    """The traced hyper-parameters of a method."""
    hints = get_type_hints(method.Hyper, include_extras=True)
    found = {}
    for name, hint in hints.items():
        notes = [a for a in get_args(hint)[1:] if isinstance(a, HyperParam)] if get_origin(hint) is Annotated else []
        found[name] = notes[0] if notes else HyperParam(0.0, "")
    return found


def select_arguments(method: type[Method], arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Those of the arguments that this stage's constructor takes."""
    return {name: arguments[name] for name in static_arguments(method) if name in arguments}


def stages(method: type[Method]) -> list[type[Method]]:
    """The method and what comes after it, in order."""
    found = [method]
    while found[-1].next_stage is not None:
        found.append(found[-1].next_stage)
    return found


def static_arguments(method: type[Method]) -> dict[str, inspect.Parameter]:
    """The constructor arguments a user may set (keyword-only; `previous` is the engine's)."""
    parameters = inspect.signature(method.__init__).parameters
    return {n: p for n, p in parameters.items() if p.kind is p.KEYWORD_ONLY and n != "previous"}
