"""Train a method with several seeds and score each on the whole data set, for the numbers of the method pages.

    python benchmarks/experiments/quality.py beta_tcvae --set beta=6 --steps 100000 --seeds 0,1 --lr 4e-4 --out results

Writes one JSON line per run, and a latent traversal of the first seed, into the folder.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path

import torch

import unweave as uw
from unweave.config.devices import find_device
from unweave.report import traversal_png
from unweave.runs import environment, write_atomic


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("method")
    parser.add_argument("--data", default="sprites")
    parser.add_argument("--set", action="append", default=[])
    parser.add_argument("--steps", type=int, default=100_000)
    parser.add_argument("--seeds", default="0,1")
    parser.add_argument("--lr", default="4e-4")
    parser.add_argument("--precision", default="bf16")
    parser.add_argument("--rows", type=int, default=0, help="observations to score on; 0: all")
    parser.add_argument("--out", type=Path, default=Path("results"))
    parser.add_argument("--runs", type=Path, default=Path("runs"))
    arguments = parser.parse_args()
    arguments.out.mkdir(parents=True, exist_ok=True)
    device = find_device("auto")
    data = uw.load_data(arguments.data)
    settings = dict(pair.split("=", 1) for pair in arguments.set)
    for seed in map(int, arguments.seeds.split(",")):
        options = dict(steps=arguments.steps, seed=seed, lr=arguments.lr, precision=arguments.precision, log_every=1000)
        name = "-".join([arguments.method, data.name, *map("".join, settings.items()), str(arguments.steps), str(seed)])
        began = time.perf_counter()
        trained = uw.train(arguments.method, data, out=arguments.runs / name, **options, **settings)
        seconds = time.perf_counter() - began
        result = uw.evaluate(trained, num_samples=arguments.rows or None)
        record = {
            "name": name,
            "method": arguments.method,
            "settings": settings,
            **options,
            "seconds": round(seconds, 1),
        }
        record |= {"scores": result.scores, "device": torch.cuda.get_device_name() if device == "cuda" else "cpu"}
        record |= {
            "share": (result.information / result.entropies).round(3).tolist(),
            "kl": result.kl.round(2).tolist(),
        }
        record |= {"versions": environment(), "last": trained.folder.logs()[-1]}
        with open(arguments.out / "results.jsonl", "a") as file:
            file.write(json.dumps(record) + "\n")
        print(name, f"{seconds:.0f} s", result.scores, flush=True)
        if seed == int(arguments.seeds.split(",")[0]):
            write_atomic(arguments.out / f"{arguments.method}.png", traversal_png(trained))


if __name__ == "__main__":
    main()
