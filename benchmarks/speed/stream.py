"""Steps a second on pictures in memory, and on the same pictures left in a file.

python benchmarks/speed/stream.py                 # 60,000 pictures, and the file thrown out of memory before every step
python benchmarks/speed/stream.py --limit 2       # a file of twice the 2 GB of memory, cache included; Linux, root
python benchmarks/speed/stream.py --limit 8 --device cuda --net locatello --steps 1000 --warm 20000 --held 0,8

The step is the engine's own. "cold" asks the system to forget the file before every step, which is worse than any
set that is merely larger than memory. What a system cannot be asked (a container over a host that keeps the file) is
not measured by it.
"""

from __future__ import annotations

import argparse
import itertools
import os
import shutil
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch

from unweave.config import resolve
from unweave.data import Sampler
from unweave.data.prefetch import BatchPrefetcher, step_keys
from unweave.data.storage.memmap import MemmapWriter, open_memmap
from unweave.data.user.arrays import Arrays
from unweave.engine.compiled import CompiledEngine
from unweave.engine.loop import LoopEngine
from unweave.engine.program import initial_state
from unweave.methods import METHODS
from unweave.training.build import build, build_program, make_engine, optimizer_settings, with_prefetch


def write_store(path: Path, count: int) -> None:
    block = np.random.default_rng(0).integers(0, 256, (256, 3, 64, 64), dtype=np.uint8)
    with MemmapWriter(path) as writer:
        for number in range(count):
            writer.add(block[number % len(block)])


def engine_of(
    data: Arrays, net: str, batch: int, device: str, precision: str | None = None, held: float = 0.0
) -> LoopEngine | CompiledEngine:
    """The engine as `train` makes it: batches of a set that is not held in memory are made ahead of the step."""
    cls = METHODS["vae"]
    arguments, hyper = resolve(cls, {"net": net})
    optimizer = optimizer_settings(cls, None, 0.0)
    config = dict(arguments=arguments, hyper=hyper, optimizer=optimizer, seed=0, device=device, batch=batch)
    config |= dict(supervision="none", precision=precision or ("bf16" if device == "cuda" else "float32"), steps=1)
    data = data if data.resident is False else data.to(device)
    method = build(cls, config, data)
    program = build_program(config, method, data)
    if data.resident is False:
        program = with_prefetch(program, 0, int(1e9 * held))
    return make_engine(program, initial_state(method), "auto")


def confine(gigabytes: float) -> None:
    """From here on this process, with what the system keeps of its files, has so much memory: a control group."""
    first, second = Path("/sys/fs/cgroup/memory"), Path("/sys/fs/cgroup")
    folder = (first if first.is_dir() else second) / f"unweave-{os.getpid()}"
    folder.mkdir()
    limit = folder / ("memory.limit_in_bytes" if first.is_dir() else "memory.max")
    limit.write_text(str(int(gigabytes * 1e9)))
    (folder / "cgroup.procs").write_text(str(os.getpid()))


def read_bytes() -> int:
    """What this process has had read from the disk."""
    words = Path("/proc/self/io").read_text().split()
    return int(words[words.index("read_bytes:") + 1])


def limited(options: argparse.Namespace) -> None:
    """The rate of steps on a set in memory, and on a file of twice the memory, in turns."""
    folder = Path(tempfile.mkdtemp(dir=options.folder))
    try:
        path, count = options.store or folder / "store.npy", int(2e9 * options.limit) // (3 * 64 * 64)
        if not path.exists():
            write_store(path, count)
            os.sync()
        if options.prepare:
            return
        with path.open("rb") as file:
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
        confine(options.limit)
        store = open_memmap(path)
        memory, file = Arrays(np.array(store[:10_000])), Arrays(store, copy=False, resident=False)
        sets = {"memory": (memory, 0.0)} | {f"file, {part:g} GB held": (file, part) for part in options.held}
        print(f"{store.nbytes / 1e9:.2f} GB in the file, {options.limit:g} GB of memory, torch {torch.__version__}")
        engines = {
            name: engine_of(data, options.net, options.batch, options.device, options.precision, held)
            for name, (data, held) in sets.items()
        }
        for engine in engines.values():
            engine.run(options.warm or options.steps)  # what is made once is made now, and the system's cache fills
        rates: dict[str, list[float]] = {name: [] for name in sets}
        for _ in range(8):
            for name, engine in engines.items():
                before, start = read_bytes(), time.perf_counter()
                engine.run(options.steps)
                rates[name].append(options.steps / (time.perf_counter() - start))
                print(f"{name:16} {rates[name][-1]:8.1f} steps/s, {(read_bytes() - before) / 1e6:7.1f} MB read")
        medians = {name: statistics.median(found) for name, found in rates.items()}
        for name, rate in medians.items():
            print(f"median, {name:16} {rate:8.1f} steps/s, {100 * rate / medians['memory']:.0f} %")
    finally:
        shutil.rmtree(folder)


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
    parser.add_argument("--warm", type=int, help="steps before the first that counts; as many as a round if left out")
    parser.add_argument("--held", default="0", help="GB of the file on the device while it trains, e.g. 0,8")
    parser.add_argument("--net", default="small")
    parser.add_argument("--limit", type=float, help="GB of memory; the file is twice as large")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--folder", help="where to write the file")
    parser.add_argument("--store", type=Path, help="a file to keep: written if it is not there")
    parser.add_argument("--prepare", action="store_true", help="only write the file")
    parser.add_argument("--precision", help="bf16 on a GPU, float32 on a CPU if left out")
    options = parser.parse_args()
    options.held = [float(part) for part in options.held.split(",")]
    if options.limit:
        limited(options)
        return
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "store.npy"
        write_store(path, options.pictures)
        file = os.open(path, os.O_RDONLY)
        forget = lambda: os.posix_fadvise(file, 0, 0, os.POSIX_FADV_DONTNEED)  # noqa: E731
        store = open_memmap(path)
        fits = store.nbytes < 4 << 30
        streamed = Arrays(store, copy=False, resident=False)
        resident = Arrays(np.array(store)) if fits else streamed
        print(f"{options.pictures} pictures, {store.nbytes / 1e9:.2f} GB, torch {torch.__version__}")
        sets = {"memory": (resident, int), "file": (streamed, int), "file, cold": (streamed, forget)}
        draws, steps = {}, {}
        for name, (data, before) in sets.items():
            sampler, keys = Sampler(data, ("x",)), itertools.count()
            draws[name] = ((lambda s=sampler, k=keys: s(torch.tensor(next(k)), options.batch)), before)
            engine = engine_of(data, options.net, options.batch, "cpu")
            steps[name] = ((lambda e=engine: e.run(1)), before)
        drawn, stepped = milliseconds(draws, options.steps), milliseconds(steps, options.steps)
        for name in sets:
            print(f"{name:12} batch {drawn[name]:7.2f} ms   step {stepped[name]:7.1f} ms")
        stream = BatchPrefetcher(Sampler(streamed, ("x",)), step_keys(0, 0), options.batch)
        next(stream)
        start = time.perf_counter()
        for _ in range(500):
            next(stream)
        print(f"made ahead on the host, for a GPU: {500 / (time.perf_counter() - start):.0f} batches a second")
        stream.close()


if __name__ == "__main__":
    main()
