"""The types that all parts of the package share: Method, Batch, Out, Representation.

A method is an `nn.Module` whose `forward` is the mathematics of one training step. It takes a batch, noise,
hyperparameters and the step number as tensors, and returns one loss per player. Optimizers, devices and replicas are
the engine's task and do not appear in a method.

Shape letters used throughout: B batch, Z latents, C channels, H height, W width, K factors, L labelled factors,
G members of a group or frames of a clip.
"""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any, ClassVar, NamedTuple, get_args, get_origin, get_type_hints

from torch import Tensor, nn

from unweave.errors import UserError, invalid


class HyperParam(NamedTuple):
    """Declaration of a hyperparameter, a field of `Method.Hyper`: `beta: Annotated[Tensor, HyperParam(4.0, ...)]`."""

    default: float
    help: str
    paper: str = ""  # values in published work, as text
    low: float = 0.0  # smallest and largest accepted value
    high: float = float("inf")


class Setting(NamedTuple):
    """Declaration of a constructor argument that users may set: `latents: Annotated[int, Setting("...")] = 10`."""

    help: str


class Noise(NamedTuple):
    """Random numbers that a method needs. A dimension is "B", "Z" (the method's `latents`) or a number."""

    kind: str
    dims: tuple[str | int, ...]


def normal(*dims: str | int) -> Noise:
    return Noise("normal", dims)


def uniform(*dims: str | int) -> Noise:
    return Noise("uniform", dims)


_UNFILLED: Any = None


class Batch(NamedTuple):
    """Data of one step. Only the fields in the method's `needs` are filled; the others are None.

    `x`, `x_other` and `x_index` need no supervision. Each kind of supervision provides some of the other fields
    (docs/guide/supervision.md). B counts observations, pairs, triplets, groups or clips.
    """

    x: Tensor = _UNFILLED  # images [B, C, H, W] in 0..1
    x_other: Tensor = _UNFILLED  # an independent batch of the same size
    pair: Tensor = _UNFILLED  # pairs, match: partners of x that share some factors with it
    changed: Tensor = _UNFILLED  # pairs: number of factors in which each pair differs [B], int64
    labels: Tensor = _UNFILLED  # labels: classes of the labelled factors of `labelled` [B, L], int64; -1 is unknown
    labelled: Tensor = _UNFILLED  # labels: images with known labels [B, C, H, W], independent of x
    groups: Tensor = _UNFILLED  # groups: images that share some factors [B, G, C, H, W]
    group_id: Tensor = _UNFILLED  # groups: index of each group [B], int64; equal if the shared factors are equal
    shared: Tensor = _UNFILLED  # match: what each pair shares [B], int64; 0 content, 1 style
    positive: Tensor = _UNFILLED  # triplets: images that share the factors of x
    negative: Tensor = _UNFILLED  # triplets: images that do not
    order: Tensor = _UNFILLED  # rank: sign of the factor of x minus that of `x_other` [B], int64; -1, 0 or 1
    clips: Tensor = _UNFILLED  # clips: consecutive frames of one video each [B, G, C, H, W]
    x_index: Tensor = _UNFILLED  # index of each x in the data set [B], int64


UNSUPERVISED_FIELDS = ("x", "x_other", "x_index")


def is_supervised(needs: Sequence[str]) -> bool:
    """Return True if a method with these needs requires supervision."""
    return any(field not in UNSUPERVISED_FIELDS for field in needs)


class Out(NamedTuple):
    """Result of `forward`: a scalar loss per player, scalars to log, and new values of buffers, by name."""

    losses: dict[str, Tensor]
    logs: dict[str, Tensor]
    state: dict[str, Tensor] = {}


class DataInfo(NamedTuple):
    """What the constructor of a method receives of the data: shapes, sizes and the form of the supervision."""

    shape: tuple[int, int, int]  # C, H, W
    size: int  # number of observations
    labels: tuple[int, ...] = ()  # number of classes of each labelled factor
    labelled: int = 0  # number of observations with labels
    members: int = 1  # number of observations in a group, or of frames in a clip
    groups: int = 0  # number of different groups
    factors: tuple[str, ...] = ()  # names of the labelled factors
    supervision: str = ""  # the text that gave the labels, for messages


class Part(NamedTuple):
    """Consecutive coordinates of a code with one meaning, such as content, style or a class."""

    name: str
    size: int
    classes: bool = False  # the coordinates are class probabilities, which sum to one
    label: int | None = None  # index of the label whose classes they are, if the method distinguishes its labels
    follows: bool = False  # a function of other parts, not of the image; see Representation.follow


class Representation(NamedTuple):
    """What evaluation, reports and exports use of a model. Any function may be None."""

    encode: Callable[[Tensor], Tensor] | None  # images -> codes [B, Z]
    latents: int
    decode: Callable[[Tensor], Tensor] | None = None  # codes -> images in 0..1
    posterior: Callable[[Tensor], tuple[Tensor, Tensor]] | None = None  # images -> mean, logvar
    parts: tuple[Part, ...] = ()  # of the coordinates, in order; () is one undivided code
    classify: Callable[[Tensor], tuple[Tensor, ...]] | None = None  # images -> class probabilities of each label
    encode_group: Callable[[Tensor], Tensor] | None = None  # groups [..., G, C, H, W] -> members' codes [..., G, Z]
    follow: Callable[[Tensor], Tensor] | None = None  # codes -> codes with the parts that follow from others updated
    from_prior: Callable[[Tensor], Tensor] | None = None  # codes drawn from N(0, 1) -> codes from a learned prior
    cluster: Callable[[Tensor], Tensor] | None = None  # images -> probabilities of unnamed clusters [B, Y]

    def require(self, name: str) -> Callable[..., Any]:
        """Return the function of this name, such as "encode"; raise if the method does not have it."""
        function = self._asdict()[name]
        if function is None:
            missing = {"encode": "encoder", "decode": "decoder"}.get(name, f"'{name}' function")
            message = f"the method of this run has no {missing}"
            raise UserError(message, argument="method", accepted=f"a method with {name}")
        return function


class Method(nn.Module):
    """Interface of all methods. Methods are final classes that derive from it directly."""

    class Hyper(NamedTuple):
        """Hyperparameters: they may change during training and differ between replicas, so they are tensors."""

    needs: tuple[str, ...] = ("x",)
    players: Mapping[str, tuple[str, ...]]  # player -> modules that it updates, such as "autoencoder.encoder"
    frozen: tuple[str, ...] = ()  # modules that no player updates
    noise: Mapping[str, Noise] = {}
    phases: Mapping[str, tuple[str, ...]] = {}  # name -> players; each phase has its own batch; {}: one phase of all
    latents: int = 0
    prior: str = "normal"  # prior distribution of the codes; see ops/priors.py
    optimizer_defaults: ClassVar[Mapping[str, Mapping[str, Any]]] = {}  # published optimizer settings of each player
    next_stage: ClassVar[type[Method] | None] = None  # built with previous=this method after it is trained
    equation: ClassVar[str] = ""
    paper: ClassVar[str] = ""
    # For tests and help texts:
    example_supervision: ClassVar[str | None] = None  # on the data set rooms; None is the method's default
    smallest_image: ClassVar[int] = 8  # side in pixels, with net="small"
    objective: ClassVar[str] = "loss"  # the logged quantity that training must lower; "" if none falls steadily

    def __init_subclass__(cls, **options: Any) -> None:
        """Read earlier names of class attributes."""
        super().__init_subclass__(**options)
        for old, new in {"recipe": "optimizer_defaults", "then": "next_stage"}.items():
            if old in vars(cls):
                warnings.warn(f"{cls.__name__}: {old} is deprecated; use {new}", DeprecationWarning, stacklevel=2)
                setattr(cls, new, vars(cls)[old])

    @staticmethod
    def check_hyper(hyper: Mapping[str, float]) -> None:
        """Raise if hyperparameters contradict each other; `hyper` has those that are constant during training."""

    def forward(self, batch: Batch, noise: Mapping[str, Tensor], hyper: Any, step: Tensor) -> Out:
        """Return the losses. A method with phases also takes `phase: str` and returns the losses of its players."""
        raise NotImplementedError

    def representation(self) -> Representation:
        """Return the representation; by default that of the module `autoencoder`."""
        modules: Mapping[str, Any] = dict(self.named_children())
        if "autoencoder" not in modules:
            raise invalid("method", type(self).__name__, "a method that defines representation()")
        return modules["autoencoder"].representation()


def all_phases(method: Method) -> dict[str, tuple[str, ...]]:
    """Return the players of each phase, in order."""
    return dict(method.phases) or {"": tuple(method.players)}


def player_parameters(method: Method) -> dict[str, list[str]]:
    """Return the parameter names of each player; raise if two players of a phase share one, or none has it."""
    names = [name for name, _ in method.named_parameters()]
    owned = {player: _under(names, modules) for player, modules in method.players.items()}
    frozen = _under(names, method.frozen)
    for players in all_phases(method).values():
        owner = dict.fromkeys(frozen, "frozen")
        for player in players:
            for name in owned[player]:
                if name in owner:
                    raise TypeError(f"{name} belongs to both {owner[name]} and {player}")
                owner[name] = player
    for name in names:
        if name not in frozen and not any(name in own for own in owned.values()):
            raise TypeError(f"{name} belongs to no player of {type(method).__name__} and is not frozen")
    return owned


def _under(names: list[str], modules: tuple[str, ...]) -> list[str]:
    return [name for name in names if any(name == module or name.startswith(module + ".") for module in modules)]


def hyper_params(method: type[Method] | Method) -> dict[str, HyperParam]:
    """Return the declared hyperparameters of a method."""
    hints = get_type_hints(method.Hyper, include_extras=True)
    return {name: _annotation(hint, HyperParam) or HyperParam(0.0, "") for name, hint in hints.items()}


def _annotation(hint: Any, kind: type) -> Any:
    notes = get_args(hint)[1:] if get_origin(hint) is Annotated else ()
    return next((note for note in notes if isinstance(note, kind)), None)


def static_arguments(method: type[Method]) -> dict[str, inspect.Parameter]:
    """Return the constructor arguments that a user may set: the keyword-only ones except `previous`."""
    parameters = inspect.signature(method.__init__).parameters
    return {n: p for n, p in parameters.items() if p.kind is p.KEYWORD_ONLY and n != "previous"}


def setting_help(method: type[Method]) -> dict[str, str]:
    """Return the help text of each hyperparameter and constructor argument of all stages; "" if it has none."""
    texts: dict[str, str] = {}
    for stage in stages(method):
        hints = get_type_hints(stage.__init__, include_extras=True)
        texts |= {name: param.help for name, param in hyper_params(stage).items()}
        for name in static_arguments(stage):
            setting = _annotation(hints.get(name), Setting)
            texts[name] = setting.help if setting else texts.get(name, "")
    return texts


def stages(method: type[Method]) -> list[type[Method]]:
    """Return the method and the stages that follow it, in order."""
    found = [method]
    while found[-1].next_stage is not None:
        found.append(found[-1].next_stage)
    return found
