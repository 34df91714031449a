"""Time of the data sets: first load (empty cache), later loads, and one batch of 64.

python benchmarks/speed/data.py --device cpu
python benchmarks/speed/data.py --device cuda --compile
python benchmarks/speed/data.py --device cuda --check    # compare images with the CPU instead
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable

import torch
from torch import Tensor

from unweave.contract import Batch
from unweave.data import Dataset, Sampler, draw_sprites, load_data

TEXTS = ("sprites", "sprites(antialias=4)", "sprites(size=128)", "rooms", "digits")


def seconds(make: Callable[[], Dataset]) -> tuple[float, Dataset]:
    start = time.perf_counter()
    data = make()
    return time.perf_counter() - start, data


def batch_milliseconds(draw: Callable[[Tensor], Batch], device: str, repeats: int) -> float:
    """Return the time per batch: the median over repeats of ten batches; on a GPU measured by events."""
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


def largest_difference(text: str, device: str, images: int = 2000) -> float:
    """Return the largest difference between images on this device and on the CPU."""
    data = load_data(text)
    index = torch.randint(0, data.size, (images,), generator=torch.Generator().manual_seed(0))
    expected = data.images(index)
    return float((data.to(device).images(index.to(device)).cpu() - expected).abs().max())


def drawn_difference(device: str, images: int = 2000) -> float:
    """Return the largest difference of sprites that are drawn on each device instead of looked up."""
    data = load_data("sprites")
    index = torch.randint(0, data.size, (images,), generator=torch.Generator().manual_seed(0))
    tables = [torch.tensor(values, dtype=torch.float64) for values in data.factor_values]
    values = torch.stack([t[c] for t, c in zip(tables, data.factors(index).unbind(1), strict=True)], dim=1)
    return float((draw_sprites(values.to(device)).cpu() - data.images(index)).abs().max())


def check(device: str) -> bool:
    """Check that sprites are equal bit for bit, and rooms, a matrix product, up to rounding."""
    fine = True
    cases = [("sprites", 0.0), ("sprites(antialias=4)", 0.0), ("rooms", 1e-5), ("digits", 0.0)]
    found = [(text, largest_difference(text, device), allowed) for text, allowed in cases]
    for text, off, allowed in [*found, ("sprites, drawn", drawn_difference(device), 0.0)]:
        fine &= off <= allowed
        print(f"{text:24} largest difference {off:.3g}, allowed {allowed:g}: {'ok' if off <= allowed else 'WRONG'}")
    return fine


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--compile", action="store_true", help="draw batches with torch.compile")
    parser.add_argument("--check", action="store_true", help="compare images with the CPU's; exit code 1 if different")
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--repeats", type=int, default=20)
    options = parser.parse_args()
    where = torch.cuda.get_device_name() if options.device == "cuda" else f"{torch.get_num_threads()} CPU threads"
    print(f"torch {torch.__version__}, {where}, batch {options.batch}, {'compiled' if options.compile else 'plain'}")
    if options.check:
        sys.exit(0 if check(options.device) else 1)
    print(f"{'data':24} {'first s':>10} {'later s':>10} {'cache MB':>10} {'batch ms':>12}")
    for text in TEXTS:
        print(measure(text, options.device, options.compile, options.repeats, options.batch), flush=True)


if __name__ == "__main__":
    main()
