"""Embeddings of real data: the F-statistic loss and the triplet loss, tested on classes not seen in training.

    python benchmarks/experiments/embeddings.py --faces orl.npz --sounds fsdd.npz --seeds 5 --steps 1000
    python benchmarks/experiments/embeddings.py --characters images_background_small1.zip,images_background_small2.zip

faces        .npz with `images` [N, H, W] and `subject`; one subject in four is held out
characters   Omniglot: trained on the first file, tested on those alphabets of the second that the first lacks
sounds       .npz with `audio`, `offsets`, `digit`, `speaker`, `take`; a class is a digit of one speaker; tested on
             held-out takes, also by modularity and explicitness of both factors

Both methods use the same network, number of steps and number of images per step. A data set without a file is left out.
Prints a table and writes one JSON line per run.
"""

from __future__ import annotations

import argparse
import json
from itertools import pairwise
from pathlib import Path
from statistics import mean, stdev
from typing import NamedTuple

import numpy as np
import torch

from unweave.config.devices import find_device
from unweave.data import Dataset, load_data
from unweave.data.published.fsdd import spectrogram
from unweave.data.views import subset
from unweave.metrics import explicitness_score, modularity_score, recall_at_1
from unweave.model import Diverged, TrainedModel
from unweave.runs import environment
from unweave.training.sweep import fit


class Task(NamedTuple):
    """Training data, test data, and the factors that define the classes."""

    train: Dataset
    test: Dataset
    by: tuple[str, ...]


def faces(path: str, size: int) -> Task:
    with np.load(path) as stored:
        subject = stored["subject"]
        data = load_data(stored["images"], factors=subject[:, None], names=["subject"])
    train, test = np.flatnonzero(subject % 4 != 3), np.flatnonzero(subject % 4 == 3)
    return Task(subset(data, indices=train.tolist()), subset(data, indices=test.tolist()), ("subject",))


def characters(paths: str, size: int) -> Task:
    first, second = (load_data("omniglot", path=path, size=size) for path in paths.split(","))
    new = [name for name in second.factor_values[0] if name not in first.factor_values[0]]
    return Task(first, subset(second, where={"alphabet": new}), ("character",))


def sounds(path: str, size: int) -> Task:
    with np.load(path) as stored:
        ends = stored["offsets"]
        audio = stored["audio"]
        pieces = [audio[a:b] for a, b in pairwise(ends)]
        factors = np.stack([stored["digit"], stored["speaker"]], axis=1)
        take = stored["take"]
    images = np.stack([spectrogram(sound, size) for sound in pieces]).reshape(len(pieces), 1, size, size)
    data = load_data(images, factors=factors, names=["digit", "speaker"])
    train, test = np.flatnonzero(take % 5 != 4), np.flatnonzero(take % 5 == 4)
    return Task(subset(data, indices=train.tolist()), subset(data, indices=test.tolist()), ("digit", "speaker"))


TASKS = {"faces": faces, "characters": characters, "sounds": sounds}


def runs_of(method: str, name: str, task: Task, arguments: argparse.Namespace) -> list[dict]:
    """Return one run per seed; a step has the same number of images for both methods."""
    by = list(task.by)
    shared = {"method": method, "data": task.train, "steps": arguments.steps, "lr": arguments.lr, "net": arguments.net}
    shared |= {"latents": arguments.latents, "device": arguments.device, "precision": arguments.precision}
    shared |= {"log_every": min(100, arguments.steps)}
    if method == "f_statistic":
        groups = f"groups(by={by}, size={arguments.members}, distinct=True)"
        shared |= {"supervision": groups, "batch": arguments.classes}
    else:
        shared |= {"supervision": f"triplets(by={by})", "batch": arguments.classes * arguments.members // 3}
    return [{**shared, "seed": s, "out": arguments.runs / f"{method}-{name}-seed{s}"} for s in range(arguments.seeds)]


def codes_of(run: TrainedModel, data: Dataset) -> tuple[np.ndarray, np.ndarray]:
    parts = torch.arange(data.size).split(256)
    codes = np.concatenate([run.encode(data.images(part)) for part in parts])
    return codes, np.concatenate([data.factors(part).numpy() for part in parts])


def scores(codes: np.ndarray, factors: np.ndarray, names: tuple[str, ...], by: tuple[str, ...]) -> dict[str, float]:
    """Return recall@1 of the classes; with several factors also modularity, explicitness and recall@1 of each."""
    chosen = factors[:, [names.index(name) for name in by]]
    _, joint = np.unique(chosen, axis=0, return_inverse=True)
    found = {"recall@1": recall_at_1(codes, joint.reshape(-1))}
    if len(by) > 1:
        found |= {"modularity": modularity_score(codes, chosen), "explicitness": explicitness_score(codes, chosen)}
        found |= {f"recall@1 of {name}": recall_at_1(codes, chosen[:, k]) for k, name in enumerate(by)}
    return found


def measured(method: str, name: str, task: Task, arguments: argparse.Namespace) -> list[dict[str, float]]:
    found = []
    for run in fit(runs_of(method, name, task, arguments)):
        if isinstance(run, Diverged):
            print(f"{run.folder.path} diverged at step {run.step}")
            continue
        found.append(scores(*codes_of(run, task.test), task.test.factor_names, task.by))
        record = {"method": method, "data": name, "scores": found[-1], "versions": environment()}
        record |= {"config": run.config.to_json()}
        with open(arguments.out / "embeddings.jsonl", "a") as file:
            file.write(json.dumps(record, default=str) + "\n")
    return found


def pixels(task: Task) -> dict[str, float]:
    index = torch.arange(task.test.size)
    images = task.test.images(index).flatten(1).numpy()
    return scores(images, task.test.factors(index).numpy(), task.test.factor_names, task.by)


def line(method: str, name: str, found: list[dict[str, float]]) -> str:
    cells = []
    for column in found[0] if found else ():
        values = [one[column] for one in found]
        spread = f" ± {stdev(values):.3f}" if len(values) > 1 else ""
        cells.append(f"{column} {mean(values):.3f}{spread}")
    return f"| {name} | {method} | {', '.join(cells)} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in TASKS:
        parser.add_argument(f"--{name}", default="", help="path of its file or files")
    parser.add_argument("--steps", type=int, default=1000)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--classes", type=int, default=12, help="classes per step of f_statistic")
    parser.add_argument("--members", type=int, default=6, help="members of a class per step")
    parser.add_argument("--latents", type=int, default=16)
    parser.add_argument("--size", type=int, default=32, help="image size of characters and sounds")
    parser.add_argument("--net", default="small")
    parser.add_argument("--lr", default="1e-3")
    parser.add_argument("--device", default="auto")
    parser.add_argument("--precision", default="float32")
    parser.add_argument("--runs", type=Path, default=Path("runs/embeddings"))
    parser.add_argument("--out", type=Path, default=Path("results"))
    arguments = parser.parse_args()
    arguments.device = find_device(arguments.device, arguments.precision)
    arguments.out.mkdir(parents=True, exist_ok=True)
    for name, make in TASKS.items():
        if not (path := getattr(arguments, name)):
            continue
        task = make(path, arguments.size)
        print(f"{name}: {task.train.size} training and {task.test.size} test images, classes by {', '.join(task.by)}")
        for method in ("f_statistic", "triplet"):
            print(line(method, name, measured(method, name, task, arguments)), flush=True)
        print(line("pixels", name, [pixels(task)]), flush=True)


if __name__ == "__main__":
    main()
