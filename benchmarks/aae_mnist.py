"""Adversarial autoencoders on MNIST beside the published errors, every line of the table a fleet of seeds.

    python benchmarks/aae_mnist.py --steps 300000 --seeds 5 --precision tf32 --out results
    python benchmarks/aae_mnist.py --only semi-100,cluster-30 --steps 20 --seeds 1 --path folder/with/the/four/files

Training sees the 60,000 training images. The error is of the 10,000 test images: with labels, the share whose likeliest
class is wrong; without, the share whose likeliest cluster has another label, each cluster labelled by that one of the
last 10,000 training images that belongs to it most. Prints the table and writes one JSON line a run.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from pathlib import Path
from typing import Any, NamedTuple

import torch

from unweave.data import Dataset, load_data
from unweave.evaluate import Trained
from unweave.fleet import fit
from unweave.metrics import cluster_error
from unweave.runs import environment
from unweave.train import find_device


class Job(NamedTuple):
    """One line of the table; published errors in %, the mean and its deviation, "" where we have none."""

    settings: dict[str, Any]
    labels: int | None = 0  # how many images have one; None is all
    published: str = ""


JOBS = {
    "semi-100": Job({"method": "aae_semi", "latents": 10}, 100, "1.90 ± 0.10"),
    "semi-1000": Job({"method": "aae_semi", "latents": 10}, 1000, "1.60 ± 0.08"),
    "semi-all": Job({"method": "aae_semi", "latents": 10}, None, "0.85 ± 0.02"),
    "cluster-16": Job({"method": "aae_cluster", "latents": 5, "clusters": 16}, published="9.55 ± 2.05"),
    "cluster-30": Job({"method": "aae_cluster", "latents": 5, "clusters": 30}, published="4.10 ± 1.13"),
    "reduce-100": Job({"method": "aae_reduce", "latents": 2}, 100),
    "reduce-1000": Job({"method": "aae_reduce", "latents": 2}, 1000),
    "reduce-20-clusters": Job({"method": "aae_reduce", "latents": 2, "clusters": 20}),
}


def supervision(labels: int | None) -> str:
    if labels is None:
        return "labels(factors=['digit'])"
    return f"labels(n={labels}, factors=['digit'], balanced=True)" if labels else "none"


def probabilities(method: Any, data: Dataset, rows: torch.Tensor) -> torch.Tensor:
    """Of the classes or clusters of these images [N, Y]."""
    found, device = method.representation(), next(method.parameters()).device
    data = data.to(device)
    parts = []
    with torch.no_grad():
        for some in rows.to(device).split(2000):
            x = data.images(some)
            if found.classify is not None:
                parts.append(found.classify(x)[0])
            else:
                parts.append(method.probabilities(x) if hasattr(method, "probabilities") else found.encode(x))
    y = torch.cat(parts)
    return y if found.classify or hasattr(method, "probabilities") else y[:, found.parts[0].size :]


def wrong_share(method: Any, train: Dataset, test: Dataset) -> float:
    """The share of test images that is wrong, in %."""
    rows = torch.arange(test.size)
    found, digits = probabilities(method, test, rows).cpu(), _digits(test, rows)
    if method.representation().classify is not None:
        return 100.0 * float((found.argmax(1) != digits).float().mean())
    last = torch.arange(train.size - 10_000, train.size)
    validation = (probabilities(method, train, last).cpu(), _digits(train, last))
    return 100.0 * cluster_error(found, digits, validation=validation)


def _digits(data: Dataset, rows: torch.Tensor) -> torch.Tensor:
    return data.factors(rows.to(next(data.buffers()).device))[:, 0].cpu()


def run_job(name: str, job: Job, train: Dataset, test: Dataset, arguments: argparse.Namespace) -> list[float]:
    """The test errors of all seeds that did not diverge."""
    told = {"steps": arguments.steps, "batch": arguments.batch, "device": arguments.device, "lr": arguments.lr}
    told |= {"precision": arguments.precision, "net": arguments.net, "likelihood": arguments.likelihood}
    told |= {"supervision": supervision(job.labels), "log_every": min(1000, arguments.steps), **job.settings}
    seeds = range(arguments.first_seed, arguments.first_seed + arguments.seeds)
    began = time.perf_counter()
    done = fit([{**told, "data": train, "seed": seed} for seed in seeds], out=arguments.runs / name, resume=True)
    seconds, errors = time.perf_counter() - began, []
    for seed, run in zip(seeds, done, strict=True):
        error = wrong_share(run.method.to(arguments.device), train, test) if isinstance(run, Trained) else None
        errors += [] if error is None else [error]
        record = {"name": name, "seed": seed, "test_error": error, "published": job.published, **told}
        record |= {"fleet_seconds": round(seconds, 1), "fleet": len(seeds), "last": run.folder.logs()[-1]}
        record |= {"gpu": torch.cuda.get_device_name() if arguments.device == "cuda" else "", "versions": environment()}
        with open(arguments.out / "aae_mnist.jsonl", "a") as file:
            file.write(json.dumps(record) + "\n")
    mean = f"{statistics.mean(errors):.2f}" if errors else "diverged"
    spread = f" ± {statistics.stdev(errors):.2f}" if len(errors) > 1 else ""
    print(f"| {name} | {mean}{spread} ({len(errors)}) | {job.published or '-'} | {seconds:.0f} |", flush=True)
    return errors


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default=",".join(JOBS), help="which lines of the table")
    parser.add_argument("--steps", type=int, default=300_000, help="600 are an epoch at a batch of 100")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--batch", type=int, default=100)
    parser.add_argument("--lr", default=None, help="of all players, such as 2e-4 or 'linear(4e-4, 1e-5, 300000)'")
    parser.add_argument("--net", default="makhzani")
    parser.add_argument("--likelihood", default="gaussian", help="the paper's half squared error; or bernoulli")
    parser.add_argument("--device", default="auto")
    parser.add_argument("--precision", default="float32", help="float32, tf32 or bf16")
    parser.add_argument("--path", default="", help="folder with MNIST's four files; downloaded without it")
    parser.add_argument("--out", type=Path, default=Path("results"))
    parser.add_argument("--runs", type=Path, default=Path("runs/aae_mnist"))
    arguments = parser.parse_args()
    arguments.device = find_device(arguments.device, arguments.precision)
    if unknown := set(arguments.only.split(",")) - set(JOBS):
        parser.error(f"--only {sorted(unknown)[0]} is unknown; use {', '.join(JOBS)}")
    arguments.out.mkdir(parents=True, exist_ok=True)
    where = {"path": arguments.path} if arguments.path else {}
    train, test = (load_data("mnist", part=part, size=28, **where) for part in ("train", "test"))
    print("| model | test error, % (runs) | published, % | seconds |\n|---|---|---|---|", flush=True)
    for name in arguments.only.split(","):
        run_job(name, JOBS[name], train, test, arguments)


if __name__ == "__main__":
    main()
