"""The interface of all data sets: images and factor classes as functions of an observation's index.

Shape letters: N observations, B batch, K factors, C channels, H height, W width.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Self

import numpy as np
import torch
from torch import Tensor, nn

from unweave.contract import DataInfo
from unweave.data.ranges import Span
from unweave.data.storage.digest import Hash, ReadRows, Rows, hash_rows, hash_text, join_digest, tensor_version
from unweave.data.storage.memory_limit import device_memory_limit
from unweave.errors import UserError


@dataclass(frozen=True)
class SourceInfo:
    """Where user data come from and how they were read. The defaults describe data of the library."""

    title: str = ""  # short name of the source; "" for data of the library
    details: Sequence[tuple[str, ...]] = ()  # rows of a table that describes the source
    notes: Sequence[str] = ()  # how the images were converted
    file_names: Sequence[str] = ()  # the image file of each observation; empty if the images are not single files
    unreadable_files: Mapping[str, str] = field(default_factory=dict)  # files that are not images -> the reason
    factor_source: str = ""  # the tables that the factors come from
    excluded_columns: Mapping[str, str] = field(default_factory=dict)  # columns that are not factors -> the reason
    name_notes: Sequence[str] = ()  # how rows of these tables were assigned to images
    row_notes: Sequence[str] = ()  # which rows and images have no match; includes `row_warnings`
    row_warnings: Sequence[str] = ()
    group_notes: Sequence[str] = ()  # which images have no group; includes `group_warnings`
    group_warnings: Sequence[str] = ()


class Dataset(nn.Module):
    """Interface of all data sets. Images are stored in buffers, so that `.to(device)` moves them.

    A subclass sets `name`, `shape`, `size`, `factor_names`, `factor_sizes` and `options` and implements `images`,
    with tensor operations only: the engine records it inside the training step. All other members have defaults.
    A grid contains every combination of its factors once, the last factor varying fastest.

    A run stores the `digest` of its data, for which all images are hashed once. A class whose images and factors are a
    function of `name` and `options` sets `renderer_version` instead, and increments it if they change.
    """

    name: str
    shape: tuple[int, int, int]
    size: int  # number of observations
    factor_names: tuple[str, ...]
    factor_sizes: tuple[int, ...]  # number of classes of each factor
    factor_spans: tuple[tuple[Span, ...], ...] = ()  # of each binned continuous factor, the range of each class
    options: dict[str, object]  # arguments that re-create the data set: load_data(name, **options)
    grid: bool = True
    partners: bool = False  # True: `index` finds every combination of factors although this is not a grid
    resident: bool = True  # False: images stay on the host, and batches are prefetched
    # Bytes of the images that may be cached on the device if they are not resident; None: half of its memory.
    device_cache_limit: int | None = 0
    preprocessing: Any = None  # the `Preprocessing` of user data
    source_info: SourceInfo = SourceInfo()
    renderer_version: int = 0  # of the `images` of this class and their subclasses; 0: identified by their pixels

    @cached_property
    def factor_values(self) -> tuple[tuple[float | str, ...], ...]:
        """The value that each class of each factor stands for; by default the class itself."""
        return tuple(tuple(map(float, range(size))) for size in self.factor_sizes)

    @cached_property
    def frames(self) -> int:
        """Frames per video: observation v * frames + t is frame t of video v. 1 if the data are not videos."""
        return self.factor_sizes[-1] if self.grid and self.factor_names[-1:] == ("frame",) else 1

    @property
    def info(self) -> DataInfo:
        return DataInfo(self.shape, self.size)

    @property
    def factor_types(self) -> tuple[str, ...]:
        """ "discrete" or "continuous" for each factor."""
        return ("discrete",) * len(self.factor_names)

    @property
    def kinds(self) -> tuple[str, ...]:
        """Earlier name of `factor_types`."""
        return self.factor_types

    def to(self, device: torch.device | str) -> Self:  # type: ignore[override]
        """Move to a device. Images that are too large for it stay on the host, and `resident` becomes False."""
        self.fit_to(torch.device(device))
        return super().to(device)

    def fit_to(self, device: torch.device) -> None:
        """Make the images not resident if they are too large for this device. By default they never are."""

    @property
    def origin(self) -> Dataset:
        """The data set that a view, or a view of a view, is derived from; otherwise the data set itself."""
        return self

    def origin_index(self, index_B: Tensor) -> Tensor:
        """Index in `origin` of each of these observations."""
        return index_B

    @property
    def digest(self) -> str:
        """Identity of all pixels and factors: COUNT-IMAGES-FACTORS, with -sampled if not all of them were read."""
        return self.compute_digest()

    def compute_digest(self, sampled: bool | None = None) -> str:
        """Return the digest of all pixels (`sampled=False`), of a sample, or (None) of a sample if all take minutes."""
        return join_digest(self.size, self.image_hash(sampled), self.factor_hash(sampled))

    def image_hash(self, sampled: bool | None = None) -> Hash:
        """Return `hash_images`, computed once."""
        return self._once(self.hash_images, sampled)

    def factor_hash(self, sampled: bool | None = None) -> Hash:
        """Return `hash_factors`, computed once."""
        return self._once(self.hash_factors, sampled)

    def _once(self, compute: Callable[[bool | None], Hash], sampled: bool | None) -> Hash:
        known: dict[object, Hash] = self.__dict__.setdefault("_hashes", {})
        key = compute.__name__, sampled, sum(map(tensor_version, self.buffers()))
        if key not in known:
            known[key] = compute(sampled)
        return known[key]

    def hash_images(self, sampled: bool | None) -> Hash:
        """Hash the images of all observations, or what they are rendered from."""
        if not _renderer_version(type(self)):
            return _hash_pixels(self, sampled)
        sources = self.image_sources(sampled)
        return Hash(hash_text([_call(self), [source.text for source in sources]]), any(s.sampled for s in sources))

    def image_sources(self, sampled: bool | None) -> Sequence[Hash]:
        """Hashes of the arrays from which a class with a `renderer_version` computes its images."""
        return ()

    def hash_factors(self, sampled: bool | None) -> Hash:
        """Hash the names, types and values of the factors, and the factors of each observation."""
        head: list[Any] = [self.factor_names, self.factor_sizes, self.factor_types, self.factor_values, self.grid]
        if self.grid or not self.factor_names:
            return Hash(hash_text(head))
        if _renderer_version(type(self)) and not self.image_sources(sampled):
            return Hash(hash_text([*head, _call(self)]))
        return hash_rows(_read_factors(self), self.size, 16 * len(head[0]), head, sampled=sampled, parallel=False)

    def images(self, index_B: Tensor) -> Tensor:
        """Images [B, C, H, W], float32 in 0..1, of these observations."""
        raise NotImplementedError

    def raw_images(self, index_B: Tensor) -> Tensor:
        """Images as they are stored, floats or bytes 0..255; used to copy batches to a device."""
        return self.images(index_B)

    def factors(self, index_B: Tensor) -> Tensor:
        """Factor classes [B, K], int64; -1 if a factor is unknown."""
        rest, classes = index_B, []
        for size in reversed(self.factor_sizes):
            classes.append(rest % size)
            rest = rest // size
        return torch.stack(classes[::-1], dim=-1)

    def values(self, index_B: Tensor) -> Tensor:
        """Factors as numbers [B, K]: the value if continuous (float64), the class if discrete, nan if unknown."""
        classes_BK = self.factors(index_B)
        return classes_BK.float().masked_fill(classes_BK < 0, torch.nan)

    def exact_values(self, index_B: Tensor) -> Tensor:
        """Return `values` as float64 on the host: with all digits, also on devices that have no float64."""
        return self.values(index_B).cpu().double()

    def index(self, factors_BK: Tensor) -> Tensor:
        """Index of the observation with these factor classes (grids only)."""
        if not self.grid:
            message = f"data {self.name!r} is not a full grid of factors; use a grid such as sprites or rooms"
            raise UserError(message, argument="data", value=self.name, accepted="a grid of factors")
        strides = [math.prod(self.factor_sizes[k + 1 :]) for k in range(len(self.factor_sizes))]
        return sum(factors_BK[..., k] * strides[k] for k in range(len(strides)))  # type: ignore[return-value]


def keep_on_host_if_too_large(data: Any, device: torch.device) -> None:
    """Make `data.pixels` not resident if they are too large for the device, unless the user asked for that."""
    automatic = data.resident and data.device_cache_limit is None
    if automatic and device.type == "cuda" and data.pixels.nbytes > device_memory_limit(device):
        pixels = data.pixels.detach().cpu()
        del data.pixels  # a buffer, which would move to the device
        data.pixels, data.resident = pixels, False


def all_indices(data: Dataset) -> Tensor:
    """Indices of all observations, on the device of the data."""
    return torch.arange(data.size, device=data_device(data))


def without_repetitions(data: Dataset, index_N: Tensor) -> Tensor:
    """Return these indices without those of an original observation that occurs earlier, in the same order.

    Training and test observations are drawn from them, so that no original observation is in both.
    """
    origin_N = data.origin_index(index_N).cpu().numpy()
    first = np.sort(np.unique(origin_N, return_index=True)[1])
    return index_N[torch.from_numpy(first).to(index_N.device)]


def data_device(data: Dataset) -> torch.device:
    """The device that the data set's buffers are on."""
    return next(data.buffers(), torch.empty(0)).device


def _indices(data: Dataset, rows: Rows) -> Tensor:
    index_B = np.arange(rows.start, rows.stop) if isinstance(rows, slice) else rows
    return torch.from_numpy(index_B).to(data_device(data))


def _renderer_version(cls: type[Dataset]) -> int:
    """Return the version of the renderer; 0 if a subclass has other images and does not declare its own version."""
    for base in cls.__mro__:
        if "renderer_version" in vars(base):
            return int(vars(base)["renderer_version"])
        if "images" in vars(base):
            return 0
    return 0


def _call(data: Dataset) -> list[Any]:
    """Return the call that creates the data set, without where its source is stored."""
    options = {name: value for name, value in data.options.items() if name not in ("data", "path")}
    return [data.name, _renderer_version(type(data)), options, data.shape, data.size]


def _read_factors(data: Dataset) -> ReadRows:
    def read(rows: Rows) -> np.ndarray:
        index_B = _indices(data, rows)
        table_BK = torch.cat([data.factors(index_B).cpu().double(), data.exact_values(index_B)], 1).numpy()
        return np.where(np.isnan(table_BK), np.nan, table_BK)  # nan has many representations

    return read


def _hash_pixels(data: Dataset, sampled: bool | None) -> Hash:
    """Hash `images`. They are computed on the CPU, because other devices round differently."""
    device = data_device(data)

    def read(rows: Rows) -> np.ndarray:
        with torch.no_grad():
            return data.images(_indices(data, rows)).contiguous().numpy()

    data.to("cpu")
    try:
        row_bytes = 4 * math.prod(data.shape)
        return hash_rows(read, data.size, row_bytes, [data.shape], sampled=sampled, name=data.name, parallel=False)
    finally:
        data.to(device)
