"""Prefetch batches of images that are stored in a file.

Training on a CPU needs no prefetching: a memory-mapped array is an ordinary tensor. A GPU cannot read it. Threads draw
the next batches on the host, with the same keys and arithmetic as if the data were on the device, and the batches are
copied while the previous step runs:

    prefetcher = BatchPrefetcher(Sampler(data, needs, supervision), step_keys(seed, step, phases), batch, pin=True)
    buffer = DeviceBuffer(prefetcher, phases, device)
    program = program._replace(sample=buffer)    # the step is recorded with the memory of the buffer
    buffer.load_next(); graph.replay()           # before every step; done by the engines

Images that fit into a cache on the device are taken from there, and only the others are copied.

Shape letters: N observations, M of them cached on the device, B batch, A of it to be copied,
C channels, H height, W width.
"""

import itertools
from collections import deque
from collections.abc import Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import torch
from torch import Tensor

from unweave.contract import Batch
from unweave.data.dataset import Dataset
from unweave.data.storage.progress import progress_task
from unweave.data.supervision.sampler import IMAGE_FIELDS, Sampler
from unweave.ops.noise import fold

BLOCK = 64 << 20  # bytes copied to the device at once
_CHUNK = 4 << 20  # bytes of the batches that a thread prepares at once


def step_keys(seed: int, step: int, phases: int = 1, block: int = 32) -> Iterator[Tensor]:
    """Yield blocks of the keys with which the engine draws the batches of this and all later steps, phase by phase."""
    run = torch.tensor(seed, dtype=torch.int64)
    for start in itertools.count(step, block):
        steps = torch.arange(start, start + block)[:, None]
        yield fold(fold(fold(run, steps), torch.arange(phases)), "data").flatten()


_Drawn = tuple[Batch, Batch]  # a batch, and the positions of its images
_Fields = dict[str, tuple[Tensor, ...]]  # fields of consecutive batches
_Plan = tuple[_Fields, _Fields]  # the fields, with indices instead of images; the positions


def _at(fields: Mapping[str, Any], where: int | slice) -> dict[str, Any]:
    return {name: field[where] for name, field in fields.items()}


class BatchPrefetcher:
    """The batches of a sequence of keys, prepared ahead by threads.

    Many threads are used because a thread that reads a page from disk waits for it. Bytes are copied as bytes, a
    quarter of the size of floats. The first `num_cached` observations are on the device and not read here. Call
    `close` at the end.
    """

    def __init__(
        self,
        sampler: Sampler,
        keys: Iterator[Tensor],
        batch: int,
        *,
        prefetch_batches: int = 16,
        threads: int = 8,
        pin: bool = False,
        num_cached: int = 0,
    ) -> None:
        self.sampler, self.keys, self.batch, self.pin = sampler, keys, batch, pin
        self.prefetch_batches, self.num_cached = prefetch_batches, num_cached
        self.raw_images = sampler.data.raw_images
        self.chunk = max(1, _CHUNK // (batch * self.raw_images(torch.arange(1)).nbytes))
        # Each thread uses one thread of torch; the other cores are left to the step.
        self._threads = ThreadPoolExecutor(threads, initializer=torch.set_num_threads, initargs=(1,))
        self._plans: deque[_Plan] = deque()
        self._pending: deque[Future[list[_Drawn]]] = deque()
        self._ready: deque[_Drawn] = deque()
        self._block = self._threads.submit(self._plan)

    def draw(self) -> _Drawn:
        """Return the next batch and, if images are cached, the positions of its images.

        Then the batch contains only the images that are not cached, [A, C, H, W]. A position below `num_cached` is
        that of a cached image; larger ones count through the images of the batch.
        """
        while len(self._pending) < self.prefetch_batches:
            if not self._plans:
                self._plans.extend(self._block.result())
                self._block = self._threads.submit(self._plan)
            self._pending.append(self._threads.submit(self._read, *self._plans.popleft()))
        if not self._ready:
            self._ready.extend(self._pending.popleft().result())
        return self._ready.popleft()

    def close(self) -> None:
        self._threads.shutdown(cancel_futures=True)

    def _plan(self) -> list[_Plan]:
        """Choose the observations of the batches of the next block, in one vectorised computation."""
        keys = next(self.keys)
        plans = torch.vmap(lambda key: self.sampler.plan(key, self.batch))(keys)
        fields: _Fields = {}
        positions: _Fields = {}
        for name in self.sampler.needs:
            if name in IMAGE_FIELDS and self.num_cached:
                fields[name], position = self._not_cached(plans[name])
                positions[name] = self._pinned(position).unbind()
            else:
                fields[name] = (plans[name] if name in IMAGE_FIELDS else self._pinned(plans[name])).unbind()
        chunks = [slice(start, start + self.chunk) for start in range(0, len(keys), self.chunk)]
        return [(_at(fields, chunk), _at(positions, chunk)) for chunk in chunks]

    def _not_cached(self, index: Tensor) -> tuple[tuple[Tensor, ...], Tensor]:
        """Return, for each step, the indices of the images that are not cached, and the positions of all images."""
        missing = index.flatten(1) >= self.num_cached
        position = torch.where(missing, self.num_cached - 1 + missing.cumsum(1), index.flatten(1)).view_as(index)
        missing[:, 0] |= ~missing.any(1)  # at least one, because a data set need not support empty batches
        return index.flatten(1)[missing].split(missing.sum(1).tolist()), position

    def _read(self, fields: _Fields, positions: _Fields) -> list[_Drawn]:
        read = {name: self._images(parts) if name in IMAGE_FIELDS else parts for name, parts in fields.items()}
        steps = range(len(next(iter(read.values()))))
        return [(Batch(**_at(read, step)), Batch(**_at(positions, step))) for step in steps]

    def _images(self, parts: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
        rows = self._pinned(self.raw_images(torch.cat([index.flatten() for index in parts])))
        pairs = zip(rows.split([index.numel() for index in parts]), parts, strict=True)
        return tuple(images.unflatten(0, index.shape) for images, index in pairs)

    def _pinned(self, value: Tensor) -> Tensor:
        return value.pin_memory() if self.pin else value


def device_cache(data: Dataset, limit: int, device: torch.device | str) -> Tensor | None:
    """Copy the first observations, as many as fit into `limit` bytes, to the device; return None if none fits."""
    first = data.raw_images(torch.arange(1))
    count = min(data.size, limit // first.nbytes)
    if not count:
        return None
    cached_M = torch.empty(count, *first.shape[1:], dtype=first.dtype, device=device)
    with progress_task(f"{data.name}: copying images to {device}", count, " images") as update:
        for start in range(0, count, step := max(1, BLOCK // first.nbytes)):
            part_B = torch.arange(start, min(start + step, count))
            cached_M[start : start + len(part_B)] = data.raw_images(part_B)
            update(start + len(part_B))
    return cached_M


class DeviceBuffer:
    """The batches of a step in device memory with constant addresses, for an engine that replays a recorded step.

    Each batch is copied to a second memory while the step runs, and `load_next` moves it into place, in the order of
    the device's streams. Images in `cached_M` (see `device_cache`) are not copied.
    """

    def __init__(
        self, prefetcher: BatchPrefetcher, phases: int, device: torch.device | str, cached_M: Tensor | None = None
    ) -> None:
        self.prefetcher, self.phases, self.cached_M = prefetcher, phases, cached_M
        self._phase = 0
        self._copy_stream = torch.cuda.Stream(device) if torch.device(device).type == "cuda" else None
        drawn = self._draw()
        self._incoming, self._current = ([self._allocate(*pair, device) for pair in drawn] for _ in range(2))
        for memory in (self._incoming, self._current):  # an engine may run the step before the first `load_next`
            self._copy(drawn, memory)

    def __call__(self, key: Tensor, batch: int, seed: Tensor | None = None) -> Batch:
        """Return the batch of the next phase; the key was already used on the host."""
        fields = itertools.starmap(self._complete, zip(*self._current[self._phase], strict=True))
        self._phase = (self._phase + 1) % self.phases
        scaled = (f / 255.0 if f is not None and f.dtype == torch.uint8 else f for f in fields)
        return Batch(*scaled)  # type: ignore[arg-type]

    @staticmethod
    def _allocate(batch: Batch, positions: Batch, device: torch.device | str) -> _Drawn:
        """Allocate memory for a batch like this one in which no image is cached, and for its positions."""
        fields = []
        for field, position in zip(batch, positions, strict=True):
            if field is not None:
                rows = len(field) if position is None else position.numel()
                field = torch.empty(rows, *field.shape[1:], dtype=field.dtype, device=device)
            fields.append(field)
        return Batch(*fields), Batch(*(None if p is None else torch.empty_like(p, device=device) for p in positions))

    def _complete(self, copied: Tensor | None, position: Tensor | None) -> Tensor | None:
        """Return a field, its images selected from the cached and the copied ones."""
        if copied is None or position is None:
            return copied
        assert self.cached_M is not None
        is_cached = (position < len(self.cached_M)).flatten()
        cached = self.cached_M.index_select(0, torch.where(is_cached, position.flatten(), 0))
        other = copied.index_select(0, torch.where(is_cached, 0, position.flatten() - len(self.cached_M)))
        return torch.where(is_cached[:, None, None, None], cached, other).unflatten(0, position.shape)

    def load_next(self) -> None:
        """Move the batches of the next step into place and start copying those of the step after it."""
        if self._copy_stream is None:
            self._copy(self._incoming, self._current)
            self._copy(self._draw(), self._incoming)
            return
        main = torch.cuda.current_stream(self._copy_stream.device)
        main.wait_stream(self._copy_stream)
        self._copy(self._incoming, self._current)
        self._copy_stream.wait_stream(main)
        with torch.cuda.stream(self._copy_stream):
            self._copy(self._draw(), self._incoming)

    def _draw(self) -> list[_Drawn]:
        return [self.prefetcher.draw() for _ in range(self.phases)]

    @staticmethod
    def _copy(sources: list[_Drawn], targets: list[_Drawn]) -> None:
        for source, target in zip(sources, targets, strict=True):
            for value, memory in zip((*source[0], *source[1]), (*target[0], *target[1]), strict=True):
                if value is not None and memory is not None:
                    memory[: len(value)].copy_(value, non_blocking=True)
