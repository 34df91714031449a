"""Content and style of real images: ML-VAE and GVAE on grouped digits, faces and objects.

    python benchmarks/experiments/groups_real.py --steps 30000 --seeds 5 --out results
    python benchmarks/experiments/groups_real.py --sets mnist --mnist folder/with/four/files
    python benchmarks/experiments/groups_real.py --sets extended_yale_b,coil20 --extended-yale-b faces.npz \\
        --coil20 things.npz

Digits are grouped by digit, faces by subject, objects by object. A data set without a path comes from the cache or is
downloaded. An .npz holds `images` [N, H, W] and one array per factor (`subject`; `object` and `pose`). The seeds of a
method train as one fleet. A linear classifier predicts the group from the content or the style; it is fitted on codes
of the training part and tested on images that neither it nor the model has seen. Prints a table and writes one JSON
line per run.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from statistics import mean, stdev

import numpy as np

from unweave.data import Dataset, load_data
from unweave.data.views import split
from unweave.evaluation.groups import group_accuracy
from unweave.model import Diverged
from unweave.runs import environment
from unweave.training.sweep import fit

METHODS = ("ml_vae", "gvae")
BY = {"mnist": "digit", "extended_yale_b": "subject", "coil20": "object"}
MEMBERS = (1, 2, 4, 8, 16)
# Reimplementation of ML-VAE on MNIST, 10 + 10 latents (README of ananyahjha93/multi-level-vae), in per cent.
PUBLISHED = "published reimplementation of ML-VAE on mnist: content of one 38.6, accumulated 99.7, style 42.1"


def main() -> None:
    arguments = read_arguments()
    arguments.out.mkdir(parents=True, exist_ok=True)
    rows = []
    for name in arguments.sets.split(","):
        train, test = parts(name, getattr(arguments, name))
        for method in METHODS:
            found = measured(method, name, train, test, arguments)
            rows.append([method, name, *summary(found)])
            print("|", " | ".join(rows[-1]), "|", flush=True)
    print("\n" + table(rows) + "\n\n" + PUBLISHED)


def read_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sets", default=",".join(BY))
    for name in BY:
        parser.add_argument(f"--{name.replace('_', '-')}", default="", help="path of its files or of an .npz")
    parser.add_argument("--steps", type=int, default=30_000)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--batch", type=int, default=32, help="groups per step")
    parser.add_argument("--size", type=int, default=8, help="members of a group")
    parser.add_argument("--latents", type=int, default=20, help="half of them are content")
    parser.add_argument("--net", default="locatello")
    parser.add_argument("--lr", default="4e-4")
    parser.add_argument("--rows", type=int, default=10_000, help="images to fit the classifier on, and to test it on")
    parser.add_argument("--device", default="auto")
    parser.add_argument("--precision", default="float32")
    parser.add_argument("--runs", type=Path, default=Path("runs/groups_real"))
    parser.add_argument("--out", type=Path, default=Path("results"))
    return parser.parse_args()


def parts(name: str, path: str) -> tuple[Dataset, Dataset]:
    """Return the training data and the test data."""
    options = {"path": path} if path else {}
    if name == "mnist":
        return load_data("mnist", part="train", **options), load_data("mnist", part="test", **options)
    whole = from_arrays(Path(path), name) if path.endswith(".npz") else load_data(name, **options)
    return split(whole, part="train", fraction=0.8), split(whole, part="validation", fraction=0.8)


def from_arrays(path: Path, name: str) -> Dataset:
    """Read images and factors from an .npz with one array per factor."""
    with np.load(path) as stored:
        names = [known for known in ("subject", "light", "object", "pose") if known in stored]
        factors = np.stack([stored[known] for known in names], axis=1)
        return load_data(stored["images"], factors=factors, names=names)


def measured(method: str, name: str, train: Dataset, test: Dataset, arguments: argparse.Namespace) -> list[dict]:
    """Return the accuracies of every seed in per cent, without runs that diverged."""
    shared = {"method": method, "data": train, "steps": arguments.steps, "batch": arguments.batch, "lr": arguments.lr}
    shared |= {"latents": arguments.latents, "net": arguments.net, "device": arguments.device}
    shared |= {"supervision": f"groups(by=[{BY[name]!r}], size={arguments.size})", "precision": arguments.precision}
    runs = [{**shared, "seed": s, "out": arguments.runs / f"{method}-{name}-seed{s}"} for s in range(arguments.seeds)]
    found = []
    for run in fit(runs):
        if isinstance(run, Diverged):
            print(f"{run.folder.path} diverged at step {run.step}")
            continue
        device = next(run.method.parameters()).device
        one = group_accuracy(run, test=test.to(device), members=MEMBERS, num_samples=arguments.rows)
        shares = {f"content of {m}": 100 * share for m, share in one.content.items()}
        found.append({**shares, "style": 100 * one.style, "chance": 100 * one.chance})
        record = {
            "method": method,
            "data": name,
            "config": run.config.to_json(),
            **found[-1],
            "versions": environment(),
        }
        with open(arguments.out / "groups_real.jsonl", "a") as file:
            file.write(json.dumps(record, default=str) + "\n")
    return found


def columns() -> list[str]:
    return [*(f"content of {m}" for m in MEMBERS), "style", "chance"]


def summary(found: list[dict]) -> list[str]:
    """Return the mean ± standard deviation over the seeds of each column, or a dash."""
    cells = []
    for column in columns():
        values = [one[column] for one in found if column in one]
        spread = f" ± {stdev(values):.1f}" if len(values) > 1 else ""
        cells.append(f"{mean(values):.1f}{spread}" if values else "–")
    return cells


def table(rows: list[list[str]]) -> str:
    head = ["method", "data", *columns()]
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


if __name__ == "__main__":
    main()
