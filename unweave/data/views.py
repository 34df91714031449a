"""Views: data sets derived from another one, by selection, by correlating factors, or by adding noise.

    subset(data='sprites', where={'shape': [0, 1]})        split(data='digits', part='validation', seed=3)
    holdout(data='rooms', combination={'shape': ['cube'], 'object_hue': [0]}, part='test')
    correlated(data='sprites', factors=['posX', 'posY'], sigma=0.2)        noisy(data='digits', sigma=0.1)

Each is a function in Python and a name in texts for `load_data`. Random choices are determined by the `seed` of the
view and are the same on every machine.

Shape letters: N observations of the view, B batch, K factors, C channels, H height, W width.
"""

import math
from collections.abc import Callable, Mapping, Sequence

import torch
from torch import Tensor
from torch.nn import Buffer

from unweave.data.callspec import call_text
from unweave.data.dataset import Dataset, all_indices, data_device
from unweave.data.storage.digest import Hash, hash_tensor
from unweave.data.storage.memory_limit import usable_memory
from unweave.errors import UserError, check_choice, check_integer, invalid
from unweave.ops.noise import fold, random_bits, random_normal

Classes = Mapping[str, Sequence[int | str]]  # factor -> classes, by number or by value if that is a text
_BYTES_PER_DRAW = 64  # of `correlated`, while it draws
_MIN_EXPONENT = -670  # exp of it is far enough above the smallest double for weights of 1e-16 of it


def _key(seed: int, name: str) -> Tensor:
    return fold(torch.tensor(check_integer("seed", seed, 0, 2**62)), name)


class View(Dataset):
    """A data set derived from another one. By default every observation has the factors of `base_index`."""

    def __init__(self, data: Dataset, name: str, options: dict[str, object]) -> None:
        super().__init__()
        self.name, self.options = name, {"data": call_text(data.name, data.options), **options}
        self.data, self.shape, self.size, self.grid = data, data.shape, data.size, data.grid
        self.factor_names, self.factor_sizes = data.factor_names, data.factor_sizes
        self.factor_values, self.factor_spans = data.factor_values, data.factor_spans
        self.frames, self.preprocessing = data.frames, data.preprocessing
        self.device_cache_limit = data.device_cache_limit

    @property
    def resident(self) -> bool:  # type: ignore[override]
        return self.data.resident

    def fit_to(self, device: torch.device) -> None:
        self.data.fit_to(device)

    @property
    def factor_types(self) -> tuple[str, ...]:
        return self.data.factor_types

    @property
    def origin(self) -> Dataset:
        return self.data.origin

    def origin_index(self, index_B: Tensor) -> Tensor:
        return self.data.origin_index(self.base_index(index_B))

    def base_index(self, index_B: Tensor) -> Tensor:
        """Index in `data` of each of these observations."""
        return index_B

    def image_sources(self, sampled: bool | None) -> Sequence[Hash]:
        return (self.data.image_hash(sampled),)

    def images(self, index_B: Tensor) -> Tensor:
        return self.data.images(self.base_index(index_B))

    def factors(self, index_B: Tensor) -> Tensor:
        return self.data.factors(self.base_index(index_B))

    def values(self, index_B: Tensor) -> Tensor:
        return self.data.values(self.base_index(index_B))

    def exact_values(self, index_B: Tensor) -> Tensor:
        return self.data.exact_values(self.base_index(index_B))


class Selection(View):
    """Some observations of a data set, possibly repeated.

    With `partners`, indices from `size` on are all observations of the base data set. Pairs that change factors
    need them: the changed combination may not be among the selected observations.
    """

    renderer_version = 1

    def __init__(
        self, data: Dataset, index_N: Tensor, name: str, options: dict[str, object], *, partners: bool = False
    ) -> None:
        if not len(index_N):
            message = f"data {call_text(name, options)!r} selects no observation of {data.name!r}"
            raise UserError(message, argument="data", value=call_text(name, options), accepted="a non-empty selection")
        super().__init__(data, name, options)
        self.size, self.grid, self.partners = len(index_N), False, partners
        self.frames = data.frames if _has_whole_videos(index_N, data.frames) else 1
        self.index_N = Buffer(index_N, persistent=False)

    def base_index(self, index_B: Tensor) -> Tensor:
        if not self.partners:
            return self.index_N[index_B]
        return torch.where(index_B < self.size, self.index_N[index_B.clamp_max(self.size - 1)], index_B - self.size)

    def image_sources(self, sampled: bool | None) -> Sequence[Hash]:
        return *super().image_sources(sampled), hash_tensor(self.index_N)

    def raw_images(self, index_B: Tensor) -> Tensor:
        return self.data.raw_images(self.base_index(index_B))

    def index(self, factors_BK: Tensor) -> Tensor:
        return self.size + self.data.index(factors_BK) if self.partners else super().index(factors_BK)


def _has_whole_videos(index_N: Tensor, frames: int) -> bool:
    if len(index_N) % frames:
        return False
    videos = index_N.reshape(-1, frames)
    whole = videos[:, :1] // frames * frames + torch.arange(frames, device=index_N.device)
    return bool((videos == whole).all())


class SubGrid(View):
    """A grid restricted to some classes of some factors, which is a grid as well."""

    renderer_version = 1

    def __init__(self, data: Dataset, selected: Mapping[int, list[int]], name: str, options: dict[str, object]) -> None:
        super().__init__(data, name, options)
        classes = [selected.get(k, list(range(size))) for k, size in enumerate(data.factor_sizes)]
        self.factor_sizes = tuple(map(len, classes))
        values = zip(data.factor_values, classes, strict=True)
        self.factor_values = tuple(tuple(of[c] for c in chosen) for of, chosen in values)
        self.size = math.prod(self.factor_sizes)
        self.frames = self.factor_sizes[-1] if self.factor_names[-1] == "frame" else 1
        for k, chosen in enumerate(classes):
            self.register_buffer(f"classes_{k}", torch.tensor(chosen, device=data_device(data)), persistent=False)

    def base_index(self, index_B: Tensor) -> Tensor:
        own_BK = self.factors(index_B)
        base = [self.get_buffer(f"classes_{k}")[own_BK[..., k]] for k in range(len(self.factor_sizes))]
        return self.data.index(torch.stack(base, dim=-1))

    def factors(self, index_B: Tensor) -> Tensor:
        return Dataset.factors(self, index_B)

    def values(self, index_B: Tensor) -> Tensor:
        return Dataset.values(self, index_B)

    def exact_values(self, index_B: Tensor) -> Tensor:
        return Dataset.exact_values(self, index_B)


class Noisy(View):
    """Gaussian noise on every pixel, clipped to 0..1; each observation always has the same noise."""

    renderer_version = 1

    def __init__(self, data: Dataset, sigma: float, seed: int) -> None:
        super().__init__(data, "noisy", {"sigma": sigma, "seed": seed})
        self.sigma = sigma
        self.key = Buffer(_key(seed, "noisy").to(data_device(data)), persistent=False)

    def hash_factors(self, sampled: bool | None) -> Hash:
        return self.data.factor_hash(sampled)

    def images(self, index_B: Tensor) -> Tensor:
        noise = torch.vmap(lambda key: random_normal(key, self.shape))(fold(self.key, index_B))
        return (self.data.images(index_B) + self.sigma * noise).clamp(0.0, 1.0)


def noisy(data: Dataset, *, sigma: float = 0.1, seed: int = 0) -> Dataset:
    """Add Gaussian noise of this standard deviation to every pixel and clip to 0..1."""
    _check_sigma(sigma)
    return Noisy(data, sigma, seed)


def subset(
    data: Dataset,
    *,
    first: int | None = None,
    random: int | None = None,
    indices: Sequence[int] | None = None,
    where: Classes | None = None,
    seed: int = 0,
) -> Dataset:
    """Select the first n observations, n random ones, those with these indices, or those with these factor classes.

    Of videos, `first` and `random` count whole videos. A class is a number, or a value if values are texts.
    """
    given = {"first": first, "random": random, "indices": indices, "where": where}
    chosen = {name: value for name, value in given.items() if value is not None}
    if len(chosen) != 1:
        raise invalid("subset", sorted(chosen), "given exactly one of first, random, indices and where")
    options: dict[str, object] = {**chosen, **({"seed": seed} if random is not None else {})}
    if where is not None:
        kept = _read_classes(data, "where", where)
        if data.grid:
            return SubGrid(data, kept, "subset", options)
        return Selection(data, all_indices(data)[_is_in(data, kept)], "subset", options)
    if indices is not None:
        return Selection(data, _read_indices(data, indices), "subset", options)
    videos = data.size // data.frames
    count = check_integer(*next(iter(chosen.items())), 1, videos)
    order = torch.arange(videos) if random is None else _shuffled(videos, seed, "subset")
    return Selection(data, _frames_of(data, order[:count]), "subset", options)


def split(data: Dataset, *, part: str = "train", fraction: float = 0.9, seed: int = 0) -> Dataset:
    """Select the training part (a random `fraction` of the observations) or the rest for validation.

    Videos are not divided. If the data contain observations repeatedly, such as those of `correlated`, all repetitions
    of an observation of `origin` are in the same part, and `fraction` is that of the different observations.
    """
    check_choice("part", part, ("train", "validation"))
    unit_V, units = _split_units(data)
    if isinstance(fraction, bool) or not isinstance(fraction, int | float) or not 0 < round(fraction * units) < units:
        raise invalid("fraction", fraction, "a number between 0 and 1 such that neither part is empty")
    order, count = _shuffled(units, seed, "split"), round(fraction * units)
    chosen = order[:count] if part == "train" else order[count:]
    options = {"part": part, "fraction": fraction, "seed": seed}
    videos = torch.isin(unit_V, chosen).nonzero()[:, 0]
    return Selection(data, _frames_of(data, videos), "split", options)


def _split_units(data: Dataset) -> tuple[Tensor, int]:
    """Return the unit of each video (or single observation) that `split` must not divide, and the number of units.

    Every video is a unit if none is repeated. Otherwise all repetitions of a video of `origin` are one.
    """
    origin_N = data.origin_index(all_indices(data)).cpu()
    if len(origin_N.unique()) == data.size:
        videos = data.size // data.frames
        return torch.arange(videos), videos
    found, unit_V = (origin_N[:: data.frames] // data.origin.frames).unique(return_inverse=True)
    return unit_V, len(found)


def holdout(data: Dataset, *, combination: Classes, part: str = "train") -> Dataset:
    """Select the observations that do not have all of these classes at once, or (part "test") only those that do."""
    check_choice("part", part, ("train", "test"))
    held_N = _is_in(data, _read_classes(data, "combination", combination))
    options: dict[str, object] = {"combination": dict(combination), "part": part}
    return Selection(data, all_indices(data)[held_N if part == "test" else ~held_N], "holdout", options)


def correlated(
    data: Dataset, *, factors: Sequence[str], sigma: float = 0.2, size: int | None = None, seed: int = 0
) -> Dataset:
    """Draw observations in which two factors are correlated (Träuble et al. 2021).

    p(a, b) ~ exp(-(a - b)^2 / (2 sigma^2)), where a and b are the classes scaled to 0..1: a small sigma is a strong
    correlation. `size` is the number of observations drawn, by default the size of the data set.
    """
    _check_sigma(sigma)
    if not isinstance(factors, list | tuple) or len(set(map(str, factors))) != 2 or len(factors) != 2:
        raise invalid("factors", factors, "the names of two factors")
    for name in factors:
        check_choice("factor", str(name), data.factor_names, context="factors")
    largest = usable_memory() // _BYTES_PER_DRAW
    count = data.size if size is None else check_integer("size", size, 1, min(largest, 2**31))
    cumulated_N = _correlation_weights(data, factors, sigma).cumsum(0)
    uniform = ((random_bits(_key(seed, "correlated"), (count,)) >> 11) & (2**53 - 1)).double() * 2.0**-53
    index = torch.searchsorted(cumulated_N, uniform.to(cumulated_N.device) * cumulated_N[-1], right=True)
    index = index.clamp_max(data.size - 1)
    if count > 1 and bool((index == index[0]).all()):
        accepted = "larger, such that more than one observation is drawn"
        raise invalid("sigma", sigma, accepted, context=f"correlated {' and '.join(factors)} of data {data.name!r}")
    options = {"factors": list(factors), "sigma": sigma, "size": size, "seed": seed}
    return Selection(data, index, "correlated", options, partners=data.grid)


def _correlation_weights(data: Dataset, factors: Sequence[str], sigma: float) -> Tensor:
    """Return the probability of each observation [N], not normalised; 0 if one of the two factors is unknown."""
    columns = list(map(data.factor_names.index, factors))
    classes_N2 = data.factors(all_indices(data))[:, columns].double()
    known_N = (classes_N2 >= 0).all(1)
    if not known_N.any():
        raise invalid("factors", list(factors), "two factors that are known of the same observations")
    a_N, b_N = (classes_N2[:, k] / max(data.factor_sizes[column] - 1, 1) for k, column in enumerate(columns))
    exponent_N = -((a_N - b_N) ** 2) / (2.0 * sigma**2)
    largest = exponent_N[known_N].max()
    # Subtract the largest exponent only if weights would underflow otherwise, because it changes their rounding.
    exponent_N = exponent_N - largest if largest < _MIN_EXPONENT else exponent_N
    return exponent_N.exp().where(known_N, 0.0)


_VIEWS: tuple[Callable[..., Dataset], ...] = (subset, split, holdout, correlated, noisy)
VIEWS = {view.__name__: view for view in _VIEWS}


def _check_sigma(sigma: object) -> None:
    if isinstance(sigma, bool) or not isinstance(sigma, int | float) or not 0.001 <= sigma <= 1000:
        raise invalid("sigma", sigma, "a number from 0.001 to 1000")


def _shuffled(count: int, seed: int, name: str) -> Tensor:
    return random_bits(_key(seed, name), (count,)).argsort(stable=True)


def _frames_of(data: Dataset, videos: Tensor) -> Tensor:
    """Return the indices of all frames of these videos, on the device of the data."""
    frames = data.frames
    return (videos[:, None] * frames + torch.arange(frames)).flatten().to(data_device(data))


def _read_indices(data: Dataset, indices: Sequence[int]) -> Tensor:
    given = list(indices) if isinstance(indices, Sequence) else [indices]
    for index in given:
        check_integer("indices", index, 0, data.size - 1)
    return torch.tensor(given, dtype=torch.int64, device=data_device(data))


def _read_classes(data: Dataset, argument: str, wanted: Classes) -> dict[int, list[int]]:
    """Return the position of each named factor with its classes in ascending order."""
    if not isinstance(wanted, Mapping) or not wanted:
        raise invalid(argument, wanted, "classes by factor such as {'shape': [0, 1]}")
    kept = {}
    for name, classes in wanted.items():
        check_choice("factor", str(name), data.factor_names, context=argument)
        k = data.factor_names.index(name)
        listed = classes if isinstance(classes, list | tuple) else [classes]
        kept[k] = sorted({_read_class(data, k, given) for given in listed})
        if not kept[k]:
            raise invalid(argument, classes, "at least one class", context=f"factor {name!r}")
    return kept


def _read_class(data: Dataset, k: int, value: object) -> int:
    size, values = data.factor_sizes[k], data.factor_values[k]
    if isinstance(value, str) and value in values:
        return values.index(value)
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < size:
        texts = [text for text in values if isinstance(text, str)]
        accepted = f"0 to {size - 1}" + (f" or one of {', '.join(texts[:12])}" if texts else "")
        raise invalid("class", value, accepted, context=f"factor {data.factor_names[k]!r}")
    return value


def _is_in(data: Dataset, selected: Mapping[int, list[int]]) -> Tensor:
    """Return a mask [N] of the observations that have one of the given classes in each of these factors."""
    classes_NK = data.factors(all_indices(data))
    columns = [torch.isin(classes_NK[:, k], torch.tensor(v, device=classes_NK.device)) for k, v in selected.items()]
    return torch.stack(columns).all(0)
