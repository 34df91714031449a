"""How long the data sets take: first use (empty cache), later loads, and one batch of 64.

python benchmarks/data.py --device cpu
python benchmarks/data.py --device cuda --compile
"""

from __future__ import annotations

import argparse
import os
import statistics
import tempfile
import time
from collections.abc import Callable

import torch
from torch import Tensor

from unweave.contract import Batch
from unweave.data import Dataset, Sampler, load_data

TEXTS = ("sprites", "sprites(antialias=4)", "sprites(size=128)", "rooms", "digits")


def seconds(make: Callable[[], Dataset]) -> tuple[float, Dataset]:
    start = time.perf_counter()
    data = make()
    return time.perf_counter() - start, data


def batch_milliseconds(draw: Callable[[Tensor], Batch], device: str, repeats: int) -> float:
    """The median over repeats of the time of ten batches, divided by ten; on a GPU measured there, by events."""
    keys = [torch.tensor(k, device=device) for k in range(10)]
    for _ in range(3):
        draw(keys[0])
    return statistics.median(ten_batches(draw, keys, device) for _ in range(repeats)) / len(keys)


def ten_batches(draw: Callable[[Tensor], Batch], keys: list[Tensor], device: str) -> float:
    if device == "cpu":
        start = time.perf_counter()
        for key in keys:
            draw(key)
        return 1000 * (time.perf_counter() - start)
    before, after = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    before.record()
    for key in keys:
        draw(key)
    after.record()
    torch.cuda.synchronize()
    return before.elapsed_time(after)


def measure(text: str, device: str, compiled: bool, repeats: int, batch: int) -> str:
    with tempfile.TemporaryDirectory() as folder:
        os.environ["UNWEAVE_CACHE"] = folder
        first, _ = seconds(lambda: load_data(text))
        later, data = seconds(lambda: load_data(text))
        stored = sum(entry.stat().st_size for entry in os.scandir(folder))
    data = data.to(device)
    sampler = Sampler(data, ("x",))

    def draw(key: Tensor) -> Batch:
        return sampler(key, batch)

    each = batch_milliseconds(torch.compile(draw) if compiled else draw, device, repeats)
    return f"{text:24} {first:10.2f} {later:10.2f} {stored / 1e6:10.2f} {each:12.3f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--compile", action="store_true", help="draw through torch.compile")
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--repeats", type=int, default=20)
    options = parser.parse_args()
    where = torch.cuda.get_device_name() if options.device == "cuda" else f"{torch.get_num_threads()} CPU threads"
    print(f"torch {torch.__version__}, {where}, batch {options.batch}, {'compiled' if options.compile else 'plain'}")
    print(f"{'data':24} {'first s':>10} {'later s':>10} {'cache MB':>10} {'batch ms':>12}")
    for text in TEXTS:
        print(measure(text, options.device, options.compile, options.repeats, options.batch), flush=True)


if __name__ == "__main__":
    main()
