"""Pairs and groups of your own pictures, from files: six methods learn from them, two seeds of each together.

python examples/pairs_and_groups.py --steps 2000
python examples/pairs_and_groups.py --methods ada_gvae,ml_vae

The pictures are written here, handwritten digits in bright or dim light, so that what a code knows can be checked;
with your own, begin at `learn`.
"""

from __future__ import annotations

import argparse
import csv
import random
import tempfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
from PIL import Image
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_score

import unweave as uw
from unweave.contract import Part
from unweave.training.sweep import fit

LIGHTS = (255, 190, 130)  # the brightest grey of a picture
GROUPS = "groups(by=['group'], size=4)"
METHODS = {  # and what each of them is told; "" is the file of pairs
    "ada_gvae": "",
    "ada_ml_vae": "",
    "group_tcvae": "",  # needs the third entry of every row
    "ml_vae": GROUPS,
    "gvae": GROUPS,
    "f_statistic": "groups(by=['group'], size=4, distinct=True)",
}


def write_pictures(folder: Path, count: int) -> dict[str, tuple[str, int]]:
    """The first digits as files; which digit each file shows, and in which light."""
    digits, folder = uw.load_data("digits(size=16)"), folder / "pictures"
    folder.mkdir(parents=True, exist_ok=True)
    shown = {}
    for number in range(count):
        light = number % len(LIGHTS)
        pixels = digits.images(torch.tensor([number]))[0, 0].mul(LIGHTS[light]).byte().numpy()
        Image.fromarray(pixels).save(folder / f"{number:04d}.png")
        shown[f"{number:04d}.png"] = (str(int(digits.factors(torch.tensor([number])))), light)
    return shown


def write_lists(folder: Path, shown: dict[str, tuple[str, int]], seed: int = 0) -> None:
    """groups.csv: pictures of one digit. pairs.csv: two of one digit share content, two of one light share style."""
    drawn, pairs = random.Random(seed), {}
    for what, place in (("content", 0), ("style", 1)):
        alike: dict[str | int, list[str]] = {}
        for name, known in shown.items():
            alike.setdefault(known[place], []).append(name)
        for known in shown.values():
            pairs.setdefault(tuple(sorted(drawn.sample(alike[known[place]], 2))), what)
    groups = [(name, digit) for name, (digit, _) in shown.items()]
    for file, rows in {"groups.csv": groups, "pairs.csv": [(*pair, what) for pair, what in pairs.items()]}.items():
        with open(folder / file, "w", newline="") as text:
            csv.writer(text).writerows(rows)


def learn(folder: Path, methods: Sequence[str], steps: int) -> dict[str, uw.TrainedModel]:
    """Every method on the same pictures, two seeds as one fleet; the first seed's run."""
    data = uw.load_data(folder / "pictures", groups=folder / "groups.csv", size=16)
    pairs, found = f"pairs(file={str(folder / 'pairs.csv')!r})", {}
    for method in methods:
        told = METHODS[method] or pairs
        run = dict(method=method, data=data, supervision=told, steps=steps, net="small", lr=1e-3)
        run |= {"batch": 10} if "distinct" in told else {"batch": 32}  # there are ten digits
        run |= {"discriminator_width": 100} if method == "group_tcvae" else {}
        found[method] = fit([{**run, "seed": seed} for seed in (0, 1)], out=folder / "runs")[0]
    return found


def known(codes: np.ndarray, classes: np.ndarray) -> float:
    """The share of pictures held out whose class a linear reading of the codes tells."""
    return float(cross_val_score(LogisticRegression(max_iter=1000), codes, classes, cv=3).mean())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pictures", type=int, default=1000)
    parser.add_argument("--steps", type=int, default=2000)
    parser.add_argument("--methods", default=",".join(METHODS))
    parser.add_argument("--folder", help="where pictures, lists and runs go; a temporary folder if not said")
    arguments = parser.parse_args()
    folder = Path(arguments.folder or tempfile.mkdtemp(prefix="pairs_and_groups-"))
    shown = write_pictures(folder, arguments.pictures)
    write_lists(folder, shown)
    digits = np.array([digit for digit, _ in shown.values()])
    for method, run in learn(folder, arguments.methods.split(","), arguments.steps).items():
        codes, start = run.encode(run.data.images(torch.arange(run.data.size))), 0
        for part in run.representation.parts or (Part("whole", codes.shape[1]),):
            own, start = codes[:, start : start + part.size], start + part.size
            print(f"{method}: the {part.name} code knows {known(own, digits):.0%} of the digits")


if __name__ == "__main__":
    main()
