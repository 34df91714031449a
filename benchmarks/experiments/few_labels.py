"""Effect of labels for a few observations: each semi-supervised term with 100 and 1,000 labels, and none.

    python benchmarks/experiments/few_labels.py --steps 40000 --seeds 0-4 --precision bf16 --out runs/few_labels

Trains fleets (4 methods x (1 + 3 terms x 2 numbers of labels) x 5 seeds = 140 runs), or resumes them, and prints the
median over seeds, with minimum and maximum, of MIG and DCI disentanglement. The scores of every run are written to
scores.csv in the folder after each fleet. A smaller example: --methods beta_vae --labels 100 --terms none,xent
--seeds 0-1. --table combines the scores of parts that were trained in separate folders into one table:

    python benchmarks/experiments/few_labels.py --table runs/few_labels-1/scores.csv runs/few_labels-2/scores.csv
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import pandas as pd

import unweave as uw
from unweave.cli.progress import sweep_progress_observer
from unweave.cli.sweep import read_seeds
from unweave.config.devices import find_device
from unweave.runs import write_atomic

SCORES = {"mig": "MIG", "dci.disentanglement": "DCI disentanglement"}


def arguments_given() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--methods", default="beta_vae,factor_vae,beta_tcvae,dip_vae_i")
    parser.add_argument("--labels", default="100,1000", help="numbers of labelled observations")
    parser.add_argument("--terms", default="none,xent,l2,cov", help="none: the method without labels")
    parser.add_argument("--gamma-sup", type=float, default=4.0)
    parser.add_argument("--data", default="sprites")
    parser.add_argument("--set", action="append", default=[], help="setting of every method, such as latents=6")
    parser.add_argument("--steps", type=int, default=40_000)
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--seeds", default="0-4")
    parser.add_argument("--lr", default="4e-4")
    parser.add_argument("--precision", default="bf16")
    parser.add_argument("--device", default="auto")
    parser.add_argument("--rows", type=int, default=10_000, help="observations to score on")
    parser.add_argument("--log-every", type=int, default=1000)
    parser.add_argument("--out", type=Path, default=Path("runs/few_labels"))
    parser.add_argument("--table", type=Path, nargs="+", help="print the table of these scores without training")
    return parser.parse_args()


def wanted_fleets(given: argparse.Namespace) -> list[list[dict[str, Any]]]:
    """Return the runs of each fleet: each method without labels, then with each term and number of labels."""
    same = {name: getattr(given, name) for name in ("data", "steps", "batch", "lr", "precision", "device", "log_every")}
    same |= dict(pair.split("=", 1) for pair in given.set)
    terms = given.terms.split(",")
    variants: list[tuple[str, dict[str, Any]]] = [("none", {})] if "none" in terms else []
    for count in given.labels.split(","):
        for term in (term for term in terms if term != "none"):
            options = {"semi_supervised": term, "gamma_sup": given.gamma_sup, "supervision": f"labels(n={count})"}
            variants.append((f"{term}-{count}", options))
    return [
        [
            {"method": method, **same, **options, "seed": seed, "out": given.out / f"{method}-{name}-seed{seed}"}
            for seed in read_seeds(given.seeds)
        ]
        for method in given.methods.split(",")
        for name, options in variants
    ]


def summary(frame: pd.DataFrame) -> str:
    """Return one table row per method, term and number of labels, fewest labels first."""
    place = frame["method"].map(list(dict.fromkeys(frame["method"])).index)
    count = frame["supervision"].str.extract(r"n=(\d+)")[0].fillna("0").astype(int)
    frame = frame.assign(place=place, count=count).sort_values(["place", "count"], kind="stable")
    lines = [
        "| method | labels | term | runs | " + " | ".join(SCORES.values()) + " |",
        "|---" * (4 + len(SCORES)) + "|",
    ]
    for (method, supervision, term), group in frame.groupby(["method", "supervision", "term"], sort=False):
        cells = [_cell(group[name]) for name in SCORES]
        lines.append(f"| {method} | {supervision} | {term} | {len(group)} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def _cell(values: pd.Series) -> str:
    return f"{values.median():.3f} ({values.min():.3f} to {values.max():.3f})"


def main() -> None:
    given = arguments_given()
    if given.table:
        print(summary(pd.concat([pd.read_csv(path, keep_default_na=False) for path in given.table])))
        return
    scored: list[pd.DataFrame] = []
    for runs in wanted_fleets(given):  # scored after each fleet, because a later one may be interrupted
        with sweep_progress_observer() as observe:
            done = uw.fit(runs, out=given.out, resume=True, observe=observe)
        frame = uw.score_runs(done, metrics=["mig", "dci"], num_samples=given.rows, device=find_device(given.device))
        frame["supervision"] = [run.get("supervision", "none") for run in runs]
        frame["term"] = [run.get("semi_supervised", "none") for run in runs]
        scored.append(frame)
        write_atomic(given.out / "scores.csv", pd.concat(scored).to_csv(index=False).encode())
    print(summary(pd.concat(scored)))


if __name__ == "__main__":
    main()
