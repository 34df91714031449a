"""Batches of pictures that stay in a file, made ahead of their time.

On a CPU nothing of this is needed: a mapped store (`mapped.py`) is an ordinary tensor. A GPU cannot reach it. There a
thread draws the coming batches on the host, with the same keys and the same arithmetic as if the set were on the
device, and they travel while the step before them runs:

    stream = BatchPrefetcher(Sampler(data, needs, supervision), step_keys(seed, step, phases), batch, pin=True)
    staged = Staged(stream, phases, device)
    program = program._replace(sample=staged)    # the step is recorded on staged's memory
    staged.load_next(); graph.replay()             # before every step, which the engines do

As many pictures as there is room for lie on the device all the same, and only the others are fetched.

Shape letters: N observations, M of them held on the device, B batch, A of it to be fetched,
C channels, H height, W width.
"""

from __future__ import annotations

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

_BLOCK = 64 << 20  # bytes that travel to the device at once
_SPAN = 4 << 20  # bytes of the batches that a thread makes at once


def step_keys(seed: int, step: int, phases: int = 1, block: int = 32) -> Iterator[Tensor]:
    """The keys with which the engine draws the batches of this step and all that follow, phase by phase, in blocks."""
    run = torch.tensor(seed, dtype=torch.int64)
    for start in itertools.count(step, block):
        steps = torch.arange(start, start + block)[:, None]
        yield fold(fold(fold(run, steps), torch.arange(phases)), "data").flatten()


_Drawn = tuple[Batch, Batch]  # a batch, and the places of its pictures
_Parts = dict[str, tuple[Tensor, ...]]  # fields of a few batches, one after the other
_Plan = tuple[_Parts, _Parts]  # the fields, with numbers for pictures; the places


def _at(parts: Mapping[str, Any], where: int | slice) -> dict[str, Any]:
    return {name: part[where] for name, part in parts.items()}


class BatchPrefetcher:
    """The batches of a stream of keys (given in blocks), in order, made ahead by threads of their own.

    Many threads, because one that touches a page that is not in memory waits for the disk. Images stay bytes where
    the data set has them so: a quarter of the load on the way to a device. The first `held` observations are the
    device's and not fetched. Close it when done.
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
        self.sampler, self.keys, self.batch, self.prefetch_batches, self.pin = (
            sampler,
            keys,
            batch,
            prefetch_batches,
            pin,
        )
        self.num_cached = num_cached
        self.rows = sampler.data.rows
        self.span = max(1, _SPAN // (batch * self.rows(torch.arange(1)).nbytes))
        # One thread for each one's tensor operations: the other cores are the step's.
        self._threads = ThreadPoolExecutor(threads, initializer=torch.set_num_threads, initargs=(1,))
        self._plans: deque[_Plan] = deque()
        self._coming: deque[Future[list[_Drawn]]] = deque()
        self._ready: deque[_Drawn] = deque()
        self._block = self._threads.submit(self._plan)

    def __iter__(self) -> BatchPrefetcher:
        return self

    def __next__(self) -> Batch:
        return self.draw()[0]

    def draw(self) -> _Drawn:
        """The next batch and, if some of its pictures are the device's, where each is to be found.

        The pictures are then those to be fetched alone, [A, C, H, W], and a place says of each picture of the batch
        which it is: of the held ones, and counted on from there of the fetched ones.
        """
        while len(self._coming) < self.prefetch_batches and (plan := self._next_plan()) is not None:
            self._coming.append(self._threads.submit(self._fetch, *plan))
        if not self._ready:
            if not self._coming:
                raise StopIteration
            self._ready.extend(self._coming.popleft().result())
        return self._ready.popleft()

    def close(self) -> None:
        self._threads.shutdown(cancel_futures=True)

    def _next_plan(self) -> _Plan | None:
        if not self._plans:
            self._plans.extend(self._block.result())
            if self._plans:
                self._block = self._threads.submit(self._plan)
        return self._plans.popleft() if self._plans else None

    def _plan(self) -> list[_Plan]:
        """Which observations the batches of the next block hold: all of them in one piece of arithmetic."""
        keys = next(self.keys, None)
        if keys is None:
            return []
        plans = torch.vmap(lambda key: self.sampler.plan(key, self.batch))(keys)
        fields: _Parts = {}
        places: _Parts = {}
        for name in self.sampler.needs:
            if name in IMAGE_FIELDS and self.num_cached:
                fields[name], place = self._away(plans[name])
                places[name] = self._pinned(place).unbind()
            else:
                fields[name] = (plans[name] if name in IMAGE_FIELDS else self._pinned(plans[name])).unbind()
        spans = [slice(start, start + self.span) for start in range(0, len(keys), self.span)]
        return [(_at(fields, span), _at(places, span)) for span in spans]

    def _away(self, index: Tensor) -> tuple[tuple[Tensor, ...], Tensor]:
        """The numbers of the pictures to be fetched, step by step, and the place of every one."""
        away = index.flatten(1) >= self.num_cached
        place = torch.where(away, self.num_cached - 1 + away.cumsum(1), index.flatten(1)).view_as(index)
        away[:, 0] |= ~away.any(1)  # at least one, for not every set can be asked for none
        return index.flatten(1)[away].split(away.sum(1).tolist()), place

    def _fetch(self, fields: _Parts, places: _Parts) -> list[_Drawn]:
        made = {name: self._pictures(parts) if name in IMAGE_FIELDS else parts for name, parts in fields.items()}
        steps = range(len(next(iter(made.values()))))
        return [(Batch(**_at(made, step)), Batch(**_at(places, step))) for step in steps]

    def _pictures(self, parts: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
        rows = self._pinned(self.rows(torch.cat([index.flatten() for index in parts])))
        found = zip(rows.split([index.numel() for index in parts]), parts, strict=True)
        return tuple(pictures.unflatten(0, index.shape) for pictures, index in found)

    def _pinned(self, value: Tensor) -> Tensor:
        return value.pin_memory() if self.pin else value


def device_cache(data: Dataset, limit: int, device: torch.device | str) -> Tensor | None:
    """The first observations of a set on the device, as many as have room in so many bytes; None if that is none."""
    first = data.rows(torch.arange(1))
    count = min(data.size, limit // first.nbytes)
    if not count:
        return None
    cached_M = torch.empty(count, *first.shape[1:], dtype=first.dtype, device=device)
    with progress_task(f"{data.name}: pictures to {device}", count, "pictures") as move:
        for start in range(0, count, step := max(1, _BLOCK // first.nbytes)):
            part_B = torch.arange(start, min(start + step, count))
            cached_M[start : start + len(part_B)] = data.rows(part_B)
            move(start + len(part_B))
    return cached_M


class DeviceBuffer:
    """A step's batches in device memory that never moves, for an engine that replays a recorded step.

    Each batch lands beside the one in use and is put in its place by `load_next`, both in the order of the device.
    The pictures of `held_M` (see `hold`) need not travel: the step takes them from there.
    """

    def __init__(
        self, stream: BatchPrefetcher, phases: int, device: torch.device | str, cached_M: Tensor | None = None
    ) -> None:
        self.stream, self.phases, self.cached_M = stream, phases, cached_M
        self._turn = 0
        self._side = torch.cuda.Stream(device) if torch.device(device).type == "cuda" else None
        drawn = self._draw()
        self._landing, self._slots = ([self._room(*pair, device) for pair in drawn] for _ in range(2))
        for memory in (self._landing, self._slots):  # an engine may run the step once before the first `load_next`
            self._copy(drawn, memory)

    def __call__(self, key: Tensor, batch: int, seed: Tensor | None = None) -> Batch:
        """What the recorded step calls, once a phase in order; the key has done its work on the host."""
        fields = itertools.starmap(self._complete, zip(*self._slots[self._turn], strict=True))
        self._turn = (self._turn + 1) % self.phases
        scaled = (f / 255.0 if f is not None and f.dtype == torch.uint8 else f for f in fields)
        return Batch(*scaled)  # type: ignore[arg-type]

    @staticmethod
    def _room(batch: Batch, places: Batch, device: torch.device | str) -> _Drawn:
        """Memory for a batch like this one, of which every picture has to be fetched, and for its places."""
        fields = []
        for field, place in zip(batch, places, strict=True):
            if field is not None:
                rows = len(field) if place is None else place.numel()
                field = torch.empty(rows, *field.shape[1:], dtype=field.dtype, device=device)
            fields.append(field)
        return Batch(*fields), Batch(*(None if p is None else torch.empty_like(p, device=device) for p in places))

    def _complete(self, fetched: Tensor | None, place: Tensor | None) -> Tensor | None:
        """A field as it is, or its pictures from among those held on the device and those fetched."""
        if fetched is None or place is None:
            return fetched
        assert self.cached_M is not None
        here = (place < len(self.cached_M)).flatten()
        num_cached = self.cached_M.index_select(0, torch.where(here, place.flatten(), 0))
        other = fetched.index_select(0, torch.where(here, 0, place.flatten() - len(self.cached_M)))
        return torch.where(here[:, None, None, None], num_cached, other).unflatten(0, place.shape)

    def load_next(self) -> None:
        """Put the batches of the coming step in place and send for those of the one after."""
        if self._side is None:
            self._copy(self._landing, self._slots)
            self._fetch()
            return
        here = torch.cuda.current_stream(self._side.device)
        here.wait_stream(self._side)
        self._copy(self._landing, self._slots)
        self._side.wait_stream(here)
        with torch.cuda.stream(self._side):
            self._fetch()

    def _fetch(self) -> None:
        self._copy(self._draw(), self._landing)

    def _draw(self) -> list[_Drawn]:
        return [self.stream.draw() for _ in range(self.phases)]

    @staticmethod
    def _copy(come_from: list[_Drawn], go_to: list[_Drawn]) -> None:
        for source, target in zip(come_from, go_to, strict=True):
            for value, place in zip((*source[0], *source[1]), (*target[0], *target[1]), strict=True):
                if value is not None and place is not None:
                    place[: len(value)].copy_(value, non_blocking=True)
