"""Training steps per second on images in memory and on images streamed from a file.

python benchmarks/speed/stream.py                 # 60,000 images; the file is also dropped from the page cache
python benchmarks/speed/stream.py --limit 2       # memory limited to 2 GB, cache included; a 4 GB file; Linux, root
python benchmarks/speed/stream.py --limit 8 --device cuda --net locatello --steps 1000 --warm 20000 --cached 0,8

"cold" drops the file from the page cache before every step, which is worse than any data set that is merely larger
than memory. It has no effect in a container if the host keeps the file in its own cache.
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

from unweave.data import Sampler
from unweave.data.prefetch import BatchPrefetcher, step_keys
from unweave.data.storage.memmap import MemmapWriter, open_memmap
from unweave.data.user.arrays import Arrays
from unweave.engine.compiled import CompiledEngine
from unweave.engine.loop import LoopEngine
from unweave.engine.program import initial_state
from unweave.engine.replicas import make_engine
from unweave.training.build import build, build_program, with_prefetch
from unweave.training.prepare import prepare


def write_store(path: Path, count: int) -> None:
    block = np.random.default_rng(0).integers(0, 256, (256, 3, 64, 64), dtype=np.uint8)
    with MemmapWriter(path) as writer:
        for number in range(count):
            writer.add(block[number % len(block)][None])


def engine_of(
    data: Arrays, net: str, batch: int, device: str, precision: str | None = None, cached: float = 0.0
) -> LoopEngine | CompiledEngine:
    """Return the engine that `train` uses; batches of streamed data are prefetched."""
    precision = precision or ("bf16" if device == "cuda" else "float32")
    run = prepare("vae", data, net=net, device=device, batch=batch, precision=precision)
    data = data.to(device) if data.resident else data
    method = build(run.cls, run.config, data)
    program = build_program(run.config, method, data)
    if not data.resident:
        program = with_prefetch(program, 0, int(1e9 * cached))
    return make_engine(program, initial_state(method), "auto")


def limit_memory(gigabytes: float) -> None:
    """Limit the memory of this process, page cache included, with a control group."""
    first, second = Path("/sys/fs/cgroup/memory"), Path("/sys/fs/cgroup")
    folder = (first if first.is_dir() else second) / f"unweave-{os.getpid()}"
    folder.mkdir()
    limit = folder / ("memory.limit_in_bytes" if first.is_dir() else "memory.max")
    limit.write_text(str(int(gigabytes * 1e9)))
    (folder / "cgroup.procs").write_text(str(os.getpid()))


def read_bytes() -> int:
    """Return the number of bytes that this process has read from the disk."""
    words = Path("/proc/self/io").read_text().split()
    return int(words[words.index("read_bytes:") + 1])


def compare_with_limit(options: argparse.Namespace) -> None:
    """Print steps per second on data in memory and on a file of twice the memory, in turns."""
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
        limit_memory(options.limit)
        store = open_memmap(path)
        memory, file = Arrays(np.array(store[:10_000])), Arrays(store, copy=False, resident=False)
        sets = {"memory": (memory, 0.0)} | {f"file, {part:g} GB cached": (file, part) for part in options.cached}
        print(f"{store.nbytes / 1e9:.2f} GB in the file, {options.limit:g} GB of memory, torch {torch.__version__}")
        engines = {
            name: engine_of(data, options.net, options.batch, options.device, options.precision, cached)
            for name, (data, cached) in sets.items()
        }
        for engine in engines.values():
            engine.run(options.warm or options.steps)  # compiles, and fills the page cache
        rates: dict[str, list[float]] = {name: [] for name in sets}
        for _ in range(8):
            for name, engine in engines.items():
                before, start = read_bytes(), time.perf_counter()
                engine.run(options.steps)
                rates[name].append(options.steps / (time.perf_counter() - start))
                print(f"{name:18} {rates[name][-1]:8.1f} steps/s, {(read_bytes() - before) / 1e6:7.1f} MB read")
        medians = {name: statistics.median(rate) for name, rate in rates.items()}
        for name, rate in medians.items():
            print(f"median, {name:18} {rate:8.1f} steps/s, {100 * rate / medians['memory']:.0f} %")
    finally:
        shutil.rmtree(folder)


def milliseconds(work: dict[str, tuple[Callable[[], object], Callable[[], object]]], rounds: int) -> dict[str, float]:
    """Return the median time of each function; they run in turns, so that other load affects all of them alike."""
    times: dict[str, list[float]] = {name: [] for name in work}
    for _ in range(rounds):
        for name, (do, before) in work.items():
            before()
            start = time.perf_counter()
            do()
            times[name].append(time.perf_counter() - start)
    return {name: 1000 * statistics.median(seconds[2:]) for name, seconds in times.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--images", type=int, default=60_000)
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--steps", type=int, default=40)
    parser.add_argument("--warm", type=int, help="warm-up steps; default: --steps")
    parser.add_argument("--cached", default="0", help="GB of the file cached on the device, e.g. 0,8")
    parser.add_argument("--net", default="small")
    parser.add_argument("--limit", type=float, help="memory limit in GB; the file is twice as large")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--folder", help="folder of the file")
    parser.add_argument("--store", type=Path, help="file to keep; written if it does not exist")
    parser.add_argument("--prepare", action="store_true", help="only write the file")
    parser.add_argument("--precision", help="default: bf16 on a GPU, float32 on a CPU")
    options = parser.parse_args()
    options.cached = [float(part) for part in options.cached.split(",")]
    if options.limit:
        compare_with_limit(options)
        return
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "store.npy"
        write_store(path, options.images)
        file = os.open(path, os.O_RDONLY)
        drop_cache = lambda: os.posix_fadvise(file, 0, 0, os.POSIX_FADV_DONTNEED)  # noqa: E731
        store = open_memmap(path)
        fits = store.nbytes < 4 << 30
        streamed = Arrays(store, copy=False, resident=False)
        resident = Arrays(np.array(store)) if fits else streamed
        print(f"{options.images} images, {store.nbytes / 1e9:.2f} GB, torch {torch.__version__}")
        sets = {"memory": (resident, int), "file": (streamed, int), "file, cold": (streamed, drop_cache)}
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
        stream.draw()
        start = time.perf_counter()
        for _ in range(500):
            stream.draw()
        print(f"prefetched on the host, for a GPU: {500 / (time.perf_counter() - start):.0f} batches per second")
        stream.close()


if __name__ == "__main__":
    main()
