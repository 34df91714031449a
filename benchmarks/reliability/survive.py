"""Kill and resume a fleet, and let one run of a fleet diverge: are all other weights equal bit for bit?

python benchmarks/reliability/survive.py --replicas 64 --steps 2000 --device cuda --precision bf16
python benchmarks/reliability/survive.py --replicas 4 --steps 60 --net small --data "sprites(size=16)" --batch 8

Trains the same fleet three times: undisturbed; killed with SIGKILL half-way and resumed; with a learning rate of 1e6 in
one of its runs.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

SCRIPT = """
import json, sys
import unweave
unweave.fit(json.loads(sys.argv[1]), strategy="batched", resume=True)
"""


def runs(folder: Path, arguments: argparse.Namespace, diverging: int | None = None) -> list[dict]:
    shared = {"method": arguments.method, "data": arguments.data, "net": arguments.net, "batch": arguments.batch}
    shared |= {"steps": arguments.steps, "device": arguments.device, "precision": arguments.precision}
    shared |= {"log_every": max(1, arguments.steps // 20), "checkpoint_every": "1s"}
    rates = [1e6 if k == diverging else 1e-4 * (1 + k % 4) for k in range(arguments.replicas)]
    return [{**shared, "seed": k, "lr": rate, "out": str(folder / str(k))} for k, rate in enumerate(rates)]


def start(given: list[dict]) -> subprocess.Popen:
    return subprocess.Popen([sys.executable, "-c", SCRIPT, json.dumps(given)])


def finish(given: list[dict]) -> float:
    began = time.monotonic()
    if start(given).wait():
        sys.exit("training failed")
    return time.monotonic() - began


def digests(folder: Path, arguments: argparse.Namespace) -> list[str]:
    """Return the digest of each run's final weights, or "" if it has none."""
    paths = [folder / str(k) / "weights.safetensors" for k in range(arguments.replicas)]
    return [hashlib.sha256(p.read_bytes()).hexdigest()[:16] if p.exists() else "" for p in paths]


def step_of(folder: Path) -> int:
    lines = (folder / "log.jsonl").read_text().splitlines() if (folder / "log.jsonl").exists() else []
    return json.loads(lines[-1])["step"] if lines else 0


def kill_halfway(given: list[dict], steps: int) -> int:
    """Kill the fleet half-way, after its first checkpoint; return the last logged step."""
    first, process = Path(given[0]["out"]), start(given)
    while process.poll() is None:
        if step_of(first) >= steps // 2 and (first / "checkpoint.safetensors").exists():
            process.send_signal(signal.SIGKILL)
            process.wait()
            return step_of(first)
        time.sleep(0.01)
    sys.exit("the fleet finished before it could be killed; use more steps")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--method", default="beta_tcvae")
    parser.add_argument("--data", default="sprites")
    parser.add_argument("--net", default="locatello")
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--replicas", type=int, default=64)
    parser.add_argument("--steps", type=int, default=2000)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--precision", default="float32")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as base:
        uninterrupted, killed, diverged = (Path(base) / name for name in ("uninterrupted", "killed", "diverged"))
        print(
            f"{arguments.replicas} runs of {arguments.steps} steps: {finish(runs(uninterrupted, arguments)):.0f} s",
            flush=True,
        )
        expected = digests(uninterrupted, arguments)
        at = kill_halfway(runs(killed, arguments), arguments.steps)
        finish(runs(killed, arguments))
        same = sum(a == b != "" for a, b in zip(digests(killed, arguments), expected, strict=True))
        print(
            f"killed at step {at} and resumed: {same} of {arguments.replicas} weights files are equal",
            flush=True,
        )
        diverging = arguments.replicas // 2
        finish(runs(diverged, arguments, diverging))
        found = digests(diverged, arguments)
        unaffected = sum(found[k] == expected[k] != "" for k in range(arguments.replicas) if k != diverging)
        end = f"ended at step {step_of(diverged / str(diverging))}" + ("" if found[diverging] else ", without weights")
        others = arguments.replicas - 1
        print(f"a learning rate of 1e6 in run {diverging} ({end}): {unaffected} of the other {others} are equal")
        sys.exit(same < arguments.replicas or unaffected < others)


if __name__ == "__main__":
    main()
