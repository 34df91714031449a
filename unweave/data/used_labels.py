"""The observations that were labelled in the training of a run, so that they are found again in any data.

They are identified by their index in the original data set, or in other data by hashes of their images. A run folder
stores both. Nothing is stored for rendered data, which can be rendered again.

Shape letters: N observations, M labelled observations, L labelled factors, V ways of rounding to 8 bits.
"""

from __future__ import annotations

import copy
import hashlib
import json
from collections.abc import Callable, Iterable
from functools import cached_property
from weakref import WeakKeyDictionary

import numpy as np
import torch
from torch import Tensor

from unweave.data.dataset import Dataset, all_indices, data_device
from unweave.data.published import FILES
from unweave.data.registry import DATASETS
from unweave.data.supervision.kind import Supervision
from unweave.data.supervision.labelled_set import LabelledSet
from unweave.runs import RunFolder, damaged

FILE = "labels.safetensors"
_RENDERED = tuple(made for name, made in DATASETS.items() if name not in FILES and isinstance(made, type))
_CHUNK_BYTES = 4 << 20  # of images that are hashed at once
_ROUNDING = 1e-2  # distance to an integer of 8-bit values that were stored as floats of any precision
_FLOAT32 = 1e-4  # the same for float32
_latest: WeakKeyDictionary[Dataset, tuple[Tensor, np.ndarray]] = WeakKeyDictionary()


class UsedLabels:
    """The labelled observations of a run.

    Parameters
    ----------
    source : call of the original data set; "" if there is none, as for arrays in memory
    content : digest of its images
    origin_index_M : index of each labelled observation in the original data set
    known_ML : whether the label of each factor is known
    digests : returns the hashes [V, M] of the images, which may have been rounded in several ways since
    """

    def __init__(
        self,
        source: str,
        content: str,
        origin_index_M: np.ndarray,
        known_ML: np.ndarray,
        digests: Callable[[], np.ndarray],
    ) -> None:
        self.source, self.content = source, content
        self.origin_index_M, self.known_ML, self._digests = origin_index_M, known_ML, digests

    @cached_property
    def digests_VM(self) -> np.ndarray:
        return self._digests()

    def find(self, data: Dataset) -> np.ndarray:
        """Return which observations of the data had a label of each factor in training [N, L]."""
        index_N = data.origin_index(all_indices(data))
        if self._is_origin(data.origin):
            return _is_in(index_N.cpu().numpy(), [self.origin_index_M[known_M] for known_M in self.known_ML.T])
        return self.find_images(image_digests(data.origin, index_N))

    def find_images(self, digests_N: np.ndarray) -> np.ndarray:
        """Return which images equal one that had a label of each factor in training [N, L]."""
        return _is_in(digests_N, [self.digests_VM[:, known_M] for known_M in self.known_ML.T])

    def _is_origin(self, origin: Dataset) -> bool:
        """Return True if this is the data set that `origin_index_M` refers to."""
        return self.source == _source(origin) and self.content == _content(origin)


def used_labels(labelled: LabelledSet) -> UsedLabels:
    """Return the labelled observations of this set."""
    data, (index_M, labels_ML) = labelled.data, labelled.table
    origin_index_M, known_ML = data.origin_index(index_M), (labels_ML >= 0).cpu().numpy()

    def digests() -> np.ndarray:
        # A GPU may round rendered images differently.
        source = copy.deepcopy(data).to("cpu") if isinstance(data.origin, _RENDERED) else data
        device = data_device(source)
        tables = [_rounded_digests(source, index_M.to(device))]
        if source.origin is not source:  # whose images may differ, for instance without noise
            tables.append(_rounded_digests(source.origin, origin_index_M.to(device)))
        return np.unique(np.concatenate(tables), axis=0)

    return UsedLabels(_source(data.origin), _content(data.origin), origin_index_M.cpu().numpy(), known_ML, digests)


def store_used_labels(folder: RunFolder, data: Dataset, supervision: Supervision, seed: int) -> None:
    """Write the labelled observations of a new run into its folder."""
    labelled = supervision.labelled_set(data, seed)
    if labelled is None or isinstance(data.origin, _RENDERED):
        return
    used = used_labels(labelled)
    arrays = {"origin_index": used.origin_index_M, "known": used.known_ML, "digests": used.digests_VM}
    tensors = {name: torch.from_numpy(array) for name, array in arrays.items()}
    folder.save(FILE, tensors, source=used.source, content=used.content)


def read_used_labels(folder: RunFolder) -> UsedLabels | None:
    """Return the labelled observations that the folder stores; None if there is no file."""
    if not folder.has(FILE):
        return None
    tensors, metadata = folder.read(FILE)
    try:
        index, known, digests = (tensors[name].numpy() for name in ("origin_index", "known", "digests"))
        return UsedLabels(metadata["source"], metadata["content"], index, known, lambda: digests)
    except KeyError as error:
        raise damaged(folder.path, f"{FILE} lacks {error}") from error


def image_digests(data: Dataset, index_N: Tensor) -> np.ndarray:
    """Return a hash of each of these images [N], rounded to 8 bits."""
    return np.concatenate([digests_of(images) for images in _image_chunks(data, index_N)])


def digests_of(images_BCHW: Tensor) -> np.ndarray:
    """Return a 64-bit hash of each image in 0..1 [B]: of its bytes if it has 8 bits per pixel, else of its floats."""
    nearest, has_8_bits_B = _nearest_bytes(images_BCHW)
    digests_B = _hashes(nearest)
    if not has_8_bits_B.all():
        floats = (images_BCHW + 0.0).float().cpu().flatten(1).numpy()  # without negative zeros
        digests_B = np.where(has_8_bits_B, digests_B, _hashes(floats))
    return digests_B


def _nearest_bytes(images_BCHW: Tensor) -> tuple[np.ndarray, np.ndarray]:
    """Return the images as bytes [B, C * H * W], and which of them have 8 bits per pixel [B]."""
    values = images_BCHW * 255.0
    nearest = values.round()
    distance_B = values.sub_(nearest).abs_().flatten(1).amax(1)
    return _to_bytes(nearest), (distance_B < _ROUNDING).cpu().numpy()


def _rounded_digests(data: Dataset, index_M: Tensor) -> np.ndarray:
    """Return the hashes of these images [V, M], for all usual ways to convert floats to 8 bits.

    Runs of a sweep often label the same observations, so the latest result is kept.
    """
    found = _latest.get(data)
    if found is None or not torch.equal(found[0], index_M.cpu()):
        chunks = [_all_roundings(images) for images in _image_chunks(data, index_M)]
        found = _latest[data] = (index_M.cpu(), np.concatenate(chunks, axis=1))
    return found[1]


def _all_roundings(images_BCHW: Tensor) -> np.ndarray:
    """Return the hashes of the images themselves and of three conversions to 8 bits [V, B]."""
    nearest, has_8_bits_B = _nearest_bytes(images_BCHW)
    if has_8_bits_B.all():
        return np.stack([_hashes(nearest)] * 4)
    values = images_BCHW * 255.0
    up, down = (_to_bytes((values + shift).floor()) for shift in (0.5 + _FLOAT32, _FLOAT32))
    return np.stack([digests_of(images_BCHW), _hashes(nearest), _hashes(up), _hashes(down)])


def _to_bytes(values_BCHW: Tensor) -> np.ndarray:
    return values_BCHW.clamp(0, 255).to(torch.uint8).cpu().flatten(1).numpy()


def _hashes(rows: np.ndarray) -> np.ndarray:
    digests = (hashlib.blake2b(row.data, digest_size=8).digest() for row in rows)
    return np.frombuffer(b"".join(digests), dtype=np.int64)


def _image_chunks(data: Dataset, index_N: Tensor) -> Iterable[Tensor]:
    bytes_per_image = 4 * int(np.prod(data.shape))
    return (data.images(part) for part in index_N.split(max(1, _CHUNK_BYTES // bytes_per_image)))


def _is_in(values_N: np.ndarray, sets: Iterable[np.ndarray]) -> np.ndarray:
    return np.stack([np.isin(values_N, values) for values in sets], axis=1)


def _source(origin: Dataset) -> str:
    """Return the call that opens a data set as text; "" if no call does."""
    return json.dumps([origin.name, origin.options], sort_keys=True, default=str) if origin.options else ""


def _content(origin: Dataset) -> str:
    """Return the part of the digest that identifies the images."""
    return f"{origin.size}-{origin.image_hash().text}"
