"""FactorVAE at two learning rates, four seeds each, as one fleet; scores at the end. On a GPU, about five minutes.

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
    arguments = parser.parse_args()
    same = {"method": "factor_vae", "data": "sprites", "gamma": 35.0, "steps": arguments.steps, "precision": "bf16"}
    runs = [{**same, "device": "cuda", "log_every": 5000, **run} for run in expand({"lr": [1e-4, 4e-4]}, range(4))]
    for run, done in zip(runs, fit(runs, out=arguments.out, resume=True), strict=True):
        scores = (
            evaluate(done, metrics=["mig", "factor_vae"], device="cuda").scores
            if isinstance(done, TrainedModel)
            else {}
        )
        print(json.dumps({"lr": run["lr"], "seed": run["seed"], **scores, "last": done.folder.logs()[-1]}), flush=True)


if __name__ == "__main__":
    main()
