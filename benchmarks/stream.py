"""Steps a second on pictures in memory, and on the same pictures left in a file.

python benchmarks/stream.py                    # 60,000 pictures, and the file thrown out of memory before every step
python benchmarks/stream.py --pictures 3000000 # more than memory holds: the file is then really read

The step is the engine's own. "cold" asks the system to forget the file before every step, which is worse than any
set that is merely larger than memory. What a system cannot be asked (a container over a host that keeps the file) is
not measured by it.
"""

from __future__ import annotations

import argparse
import itertools
import os
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch

from unweave.data import Sampler
from unweave.data.arrays import Arrays
from unweave.data.stream import Stream, Writer, mapped, step_keys
from unweave.engine.loop import Loop
from unweave.engine.program import initial_state
from unweave.methods import METHODS
from unweave.settings import resolve
from unweave.train import build, build_program, optimizer_settings


def write_store(path: Path, count: int) -> None:
    block = np.random.default_rng(0).integers(0, 256, (256, 3, 64, 64), dtype=np.uint8)
    with Writer(path) as writer:
        for number in range(count):
            writer.add(block[number % len(block)])


def step_of(data: Arrays, net: str, batch: int) -> Callable[[], object]:
    cls = METHODS["vae"]
    arguments, hyper = resolve(cls, {"net": net})
    optimizer = optimizer_settings(cls, None, 0.0)
    config = dict(arguments=arguments, hyper=hyper, optimizer=optimizer, seed=0, device="cpu", batch=batch)
    config |= dict(supervision="none", precision="float32", steps=1)
    method = build(cls, config, data)
    loop = Loop(build_program(config, method, data), initial_state(method))
    return lambda: loop.run(1)


def milliseconds(work: dict[str, tuple[Callable[[], object], Callable[[], object]]], rounds: int) -> dict[str, float]:
    """The median of each, taken in turns: what else the machine does then slows all of them alike."""
    times: dict[str, list[float]] = {name: [] for name in work}
    for _ in range(rounds):
        for name, (do, before) in work.items():
            before()
            start = time.perf_counter()
            do()
            times[name].append(time.perf_counter() - start)
    return {name: 1000 * statistics.median(found[2:]) for name, found in times.items()}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--pictures", type=int, default=60_000)
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--steps", type=int, default=40)
    parser.add_argument("--net", default="small")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "store.npy"
        write_store(path, options.pictures)
        file = os.open(path, os.O_RDONLY)
        forget = lambda: os.posix_fadvise(file, 0, 0, os.POSIX_FADV_DONTNEED)  # noqa: E731
        store = mapped(path)
        fits = store.nbytes < 4 << 30
        streamed = Arrays(store, copy=False, resident=False)
        resident = Arrays(np.array(store)) if fits else streamed
        print(f"{options.pictures} pictures, {store.nbytes / 1e9:.2f} GB, torch {torch.__version__}")
        sets = {"memory": (resident, int), "file": (streamed, int), "file, cold": (streamed, forget)}
        draws, steps = {}, {}
        for name, (data, before) in sets.items():
            sampler, keys = Sampler(data, ("x",)), itertools.count()
            draws[name] = ((lambda s=sampler, k=keys: s(torch.tensor(next(k)), options.batch)), before)
            steps[name] = (step_of(data, options.net, options.batch), before)
        drawn, stepped = milliseconds(draws, options.steps), milliseconds(steps, options.steps)
        for name in sets:
            print(f"{name:12} batch {drawn[name]:7.2f} ms   step {stepped[name]:7.1f} ms")
        stream = Stream(Sampler(streamed, ("x",)), step_keys(0, 0), options.batch)
        next(stream)
        start = time.perf_counter()
        for _ in range(500):
            next(stream)
        print(f"made ahead on the host, for a GPU: {500 / (time.perf_counter() - start):.0f} batches a second")
        stream.close()


if __name__ == "__main__":
    main()
