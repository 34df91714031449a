"""Runs of the studies kingma2014 and makhzani2015 with changed settings: what changes the classification error?

    python benchmarks/experiments/study_gap.py aae_semi --set "supervision=labels(n=100, balanced=True, seed=3)" \\
        --seeds 0-2
    python benchmarks/experiments/study_gap.py aae_semi --set steps=450000 --set "lr=linear(5e-4, 0, 450000)" \\
        --seeds 0,3
    python benchmarks/experiments/study_gap.py aae_semi --set optimizer=sgd --set clip=20 --set "init=normal(0.01)" \\
        --seeds 0-2
    python benchmarks/experiments/study_gap.py aae_cluster --set "class_weight=linear(0, 1, 6000)"
    python benchmarks/experiments/study_gap.py m2 --set alpha=0.1

Trains one fleet of the first row of the study for that method (100 labels, 16 clusters), or resumes it. Prints the
errors as the study measures them and writes those of every run to scores.csv in the folder.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import pandas as pd

import unweave as uw
from unweave.cli.progress import sweep_progress_observer
from unweave.cli.sweep import read_seeds
from unweave.model import TrainedModel
from unweave.runs import write_atomic
from unweave.studies import kingma2014, makhzani2015
from unweave.studies.work import select_runs

STUDIES = {
    **dict.fromkeys(("aae_semi", "aae_cluster", "aae_reduce"), makhzani2015.STUDY),
    **dict.fromkeys(("m1", "m2", "m1_m2"), kingma2014.STUDY),
}
NUMBERS = {"steps": int, "batch": int, "log_every": int, "latents": int, "clusters": int, "clip": float}


def arguments_given() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("method", choices=STUDIES)
    parser.add_argument("--data", choices=("mnist", "fashion_mnist"), default="mnist")
    parser.add_argument("--set", action="append", default=[], help="setting of the run, name=value; name= removes it")
    parser.add_argument("--seeds", default="0-4")
    parser.add_argument("--path", help="folder with the files of the data; default: the cache or a download")
    parser.add_argument("--precision", default="bf16")
    parser.add_argument("--device", default="auto")
    parser.add_argument("--out", type=Path, default=Path("runs/study_gap"))
    return parser.parse_args()


def changed(row: dict[str, Any], settings: list[str]) -> dict[str, Any]:
    """Return the row with these settings replaced."""
    row |= dict(pair.split("=", 1) for pair in settings)
    return {name: NUMBERS[name](value) if name in NUMBERS else value for name, value in row.items() if value != ""}


def main() -> None:
    given = arguments_given()
    study, only = STUDIES[given.method], {"method": [given.method], "data": [given.data]}
    rows = select_runs(study, "full", only=only, path=given.path, precision=given.precision, device=given.device)
    same = changed(rows[0], given.set)
    runs = [{**same, "seed": seed, "out": given.out / f"seed{seed}"} for seed in read_seeds(given.seeds)]
    with sweep_progress_observer() as observe:
        done = uw.fit(runs, out=given.out, resume=True, observe=observe)
    assert study.extra is not None
    what = {"method": given.method, "changed": " ".join(given.set)}
    scores = [study.extra(found) if isinstance(found, TrainedModel) else {"error": "diverged"} for found in done]
    frame = pd.DataFrame([what | {"seed": run["seed"], **score} for run, score in zip(runs, scores, strict=True)])
    write_atomic(given.out / "scores.csv", frame.to_csv(index=False).encode())
    print(frame.to_string(index=False))


if __name__ == "__main__":
    main()
