"""CPU time of a training step as `unweave.train` runs it, with one thread.

The script uses only names exported by `unweave`, so PYTHONPATH may point at a checkout of another commit:

    OMP_NUM_THREADS=1 python benchmarks/speed/train_cpu.py
    OMP_NUM_THREADS=1 PYTHONPATH=/path/to/checkout python benchmarks/speed/train_cpu.py
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path
from typing import Any

import torch

import unweave as uw

SKIPPED = 10  # first steps, not timed


def milliseconds(method: str, engine: str, steps: int, size: int) -> float:
    """Return the CPU time per step between the records of the log."""
    times: dict[int, float] = {}

    def observe(progress: Any) -> None:
        times[progress.step] = time.process_time()

    options = {"batch": 64, "log_every": SKIPPED, "device": "cpu", "engine": engine, "seed": 0}
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "run"
        uw.train(method, f"sprites(size={size})", steps=SKIPPED + steps, out=out, observe=observe, **options)
    return 1000 * (times[SKIPPED + steps] - times[SKIPPED]) / steps


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--methods", default="vae,factor_vae", help="comma-separated names")
    parser.add_argument("--engine", default="loop", help="loop or compiled")
    parser.add_argument("--steps", type=int, default=30, help="timed steps, a multiple of 10")
    parser.add_argument("--size", type=int, default=64, help="side of the images in pixels")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    print(f"package {Path(uw.__file__).parent}, torch {torch.__version__}, engine {arguments.engine}")
    for method in arguments.methods.split(","):
        time_per_step = milliseconds(method, arguments.engine, arguments.steps, arguments.size)
        print(f"{method}: {time_per_step:.1f} ms per step", flush=True)


if __name__ == "__main__":
    main()
