"""Kill a training run with SIGKILL at random times, resume it, and compare its final weights; repeatedly.

python benchmarks/reliability/kill.py --times 20
"""

from __future__ import annotations

import argparse
import hashlib
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

SETTINGS = ["--data", "rooms(size=16)", "--steps", "400", "--batch", "8", "--set", "net=small", "--set", "latents=4"]
SETTINGS += ["--log-every", "10", "--checkpoint-every", "20", "--quiet", "--device", "cpu"]


def command(*words: str) -> list[str]:
    return [sys.executable, "-m", "unweave", "train", *words]


def digest(run: Path) -> tuple[str, str]:
    """Return the digests of the final weights and of the log."""
    return tuple(hashlib.sha256((run / n).read_bytes()).hexdigest()[:16] for n in ("weights.safetensors", "log.jsonl"))  # type: ignore[return-value]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--times", type=int, default=20)
    parser.add_argument("--method", default="ada_gvae")
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    draw = random.Random(arguments.seed)
    folder = Path(tempfile.mkdtemp())
    began = time.monotonic()
    subprocess.run(
        command(arguments.method, *SETTINGS, "--out", str(folder / "uninterrupted")), check=True, capture_output=True
    )
    uninterrupted, length = digest(folder / "uninterrupted"), time.monotonic() - began
    print(f"uninterrupted: {length:.1f} s, weights {uninterrupted[0]}, log {uninterrupted[1]}", flush=True)
    same = 0
    for repetition in range(arguments.times):
        run, kills = folder / f"run{repetition}", 0
        words = [arguments.method, *SETTINGS, "--out", str(run)]
        while not (run / "weights.safetensors").exists():
            process = subprocess.Popen(command(*words), stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
            try:
                process.wait(draw.uniform(0.3, 1.0) * length if kills < 2 else None)
            except subprocess.TimeoutExpired:
                process.send_signal(signal.SIGKILL)
                process.wait()
                kills += 1
            words = ["--resume", str(run), "--quiet"] if (run / "config.json").exists() else words
        same += digest(run) == uninterrupted
        print(
            f"{repetition + 1:3}: killed {kills} times, {'equal' if digest(run) == uninterrupted else 'DIFFERENT'}",
            flush=True,
        )
    print(f"{same} of {arguments.times} ended with equal weights and log")
    shutil.rmtree(folder)
    sys.exit(same != arguments.times)


if __name__ == "__main__":
    main()
