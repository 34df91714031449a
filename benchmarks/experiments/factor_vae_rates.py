"""Train FactorVAE at two learning rates with four seeds each, as one fleet, and score it; five minutes on a GPU.

python benchmarks/experiments/factor_vae_rates.py --steps 100000
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from unweave.evaluation.evaluate import evaluate
from unweave.model import TrainedModel
from unweave.training.sweep import expand, fit


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=100_000)
    parser.add_argument("--out", type=Path, default=Path("runs/factor_vae_rates"))
    parser.add_argument("--data", default="sprites")
    parser.add_argument("--net", default="locatello")
    parser.add_argument("--precision", default="bf16")
    parser.add_argument("--device", default="cuda")
    arguments = parser.parse_args()
    given = {name: getattr(arguments, name) for name in ("data", "net", "steps", "precision", "device")}
    runs = [
        {**given, "method": "factor_vae", "gamma": 35.0, "log_every": 5000, **run}
        for run in expand({"lr": [1e-4, 4e-4]}, range(4))
    ]
    for run, done in zip(runs, fit(runs, out=arguments.out, resume=True), strict=True):
        scores = (
            evaluate(done, metrics=["mig", "factor_vae"], device=arguments.device).scores
            if isinstance(done, TrainedModel)
            else {}
        )
        print(json.dumps({"lr": run["lr"], "seed": run["seed"], **scores, "last": done.folder.logs()[-1]}), flush=True)


if __name__ == "__main__":
    main()
