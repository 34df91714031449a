"""Test error of M1, M2 and M1+M2 on MNIST with few labels, beside the published: Kingma et al. 2014, table 1.

    python benchmarks/kingma_mnist.py --steps 100000 --precision bf16 --out results

Five seeds of each are trained together. Each has labelled images of its own, equally many of every class, out of the
60,000 of the training part; the error is on the 10,000 of the test part. Writes a JSON line for every run.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from pathlib import Path
from typing import Any

import torch

import unweave as uw
from unweave.data import Dataset
from unweave.runs import environment

METHODS: dict[str, tuple[str, dict[str, Any]]] = {
    "m1_regression": ("m1", {"classifier": "regression"}),
    "m1_tsvm": ("m1", {"classifier": "tsvm"}),
    "m2": ("m2", {}),
    "m1_m2": ("m1_m2", {}),
}
PUBLISHED = {
    "m1_tsvm": {100: "11.82 +- 0.25", 1000: "4.24 +- 0.07", 3000: "3.49 +- 0.04"},
    "m2": {100: "11.97 +- 1.71", 1000: "3.60 +- 0.56", 3000: "3.92 +- 0.63"},
    "m1_m2": {100: "3.33 +- 0.14", 1000: "2.40 +- 0.02", 3000: "2.18 +- 0.04"},
}


def read_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", choices=["mnist", "fashion_mnist"], default="mnist")
    parser.add_argument("--path", help="the folder with the four files; without it they are downloaded")
    parser.add_argument("--methods", default=",".join(METHODS))
    parser.add_argument("--labels", default="100,1000,3000")
    parser.add_argument("--seeds", type=int, default=5, help="how many")
    parser.add_argument("--steps", type=int, default=100_000, help="of each stage")
    parser.add_argument("--batch", type=int, default=100)
    parser.add_argument("--lr", help="for all; without it each method's own")
    parser.add_argument("--precision", default="float32")
    parser.add_argument("--grey", action="store_true", help="grey images; else black and white ones drawn anew")
    parser.add_argument("--set", action="append", default=[], help="a further setting of the methods, decay=0")
    parser.add_argument("--out", type=Path, default=Path("results"))
    parser.add_argument("--runs", type=Path, default=Path("runs/kingma"))
    return parser.parse_args()


def train(name: str, labels: int, data: Dataset, given: argparse.Namespace) -> list[Any]:
    """All seeds of one method with so many labels; goes on with what an interrupted call left."""
    method, settings = METHODS[name]
    options = dict(
        steps=given.steps, batch=given.batch, precision=given.precision, binarize=not given.grey, lr=given.lr
    )
    options |= {"supervision": f"labels(n={labels}, balanced=True)", "log_every": min(1000, given.steps)}
    options |= dict(pair.split("=", 1) for pair in given.set)
    runs = [dict(method=method, data=data, seed=seed, **options, **settings) for seed in range(given.seeds)]
    return uw.fit(runs, out=given.runs / f"{given.data}-{name}-{labels}", resume=True)


def record(name: str, labels: int, run: Any, test: Dataset, given: argparse.Namespace) -> dict[str, Any]:
    """One run's line."""
    told = {name_: run.config[name_] for name_ in ("seed", "steps", "batch", "precision", "arguments", "hyper")}
    told |= {"name": name, "data": given.data, "labels": labels, "lr": given.lr}
    told |= {"device": torch.cuda.get_device_name() if torch.cuda.is_available() else "cpu", "versions": environment()}
    if isinstance(run, uw.Diverged):
        return {**told, "error": None, "diverged_at": run.step}
    device = next(run.method.parameters()).device.type
    (wrong,) = uw.class_error(run, test, device=device).values()
    return {**told, "error": 100.0 * wrong, "last": run.folder.logs()[-1]}


def summary(errors: list[float]) -> str:
    if not errors:
        return "diverged"
    spread = statistics.stdev(errors) if len(errors) > 1 else 0.0
    return f"{statistics.mean(errors):.2f} +- {spread:.2f}"


def main() -> None:
    given = read_arguments()
    names, counts = given.methods.split(","), [int(n) for n in given.labels.split(",")]
    if unknown := [name for name in names if name not in METHODS]:
        raise SystemExit(f"methods '{unknown[0]}' is unknown; use some of {', '.join(METHODS)}")
    where = {"path": given.path} if given.path else {}
    data, test = (uw.load_data(given.data, part=part, size=28, **where) for part in ("train", "test"))
    given.out.mkdir(parents=True, exist_ok=True)
    table = [f"| test error, % ({given.seeds} seeds) | labels | ours | published |", "| --- | --- | --- | --- |"]
    for name in names:
        for labels in counts:
            began = time.perf_counter()
            runs = train(name, labels, data, given)
            seconds = round(time.perf_counter() - began, 1)
            records = [{**record(name, labels, run, test, given), "seconds_of_all": seconds} for run in runs]
            with open(given.out / "kingma_mnist.jsonl", "a") as file:
                file.writelines(json.dumps(line) + "\n" for line in records)
            ours = summary([line["error"] for line in records if line["error"] is not None])
            published = PUBLISHED.get(name, {}).get(labels, "-") if given.data == "mnist" else "-"
            table.append(f"| {name} | {labels} | {ours} | {published} |")
            print(table[-1], f"{seconds:.0f} s", flush=True)
    print("\n" + "\n".join(table))


if __name__ == "__main__":
    main()
