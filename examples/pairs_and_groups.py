"""Pairs and groups of your own pictures, from files: ada_gvae learns from the ones, ml_vae from the others.

python examples/pairs_and_groups.py --steps 2000

The pictures are written here, handwritten digits, so that what a code knows can be checked; with your own, begin at
`learn`.
"""

from __future__ import annotations

import argparse
import csv
import random
import tempfile
from pathlib import Path

import numpy as np
import torch
from PIL import Image
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_score

import unweave as uw
from unweave.contract import Part


def write_pictures(folder: Path, count: int) -> dict[str, str]:
    """The first digits as files; which digit each file shows."""
    digits, folder = uw.load_data("digits(size=16)"), folder / "pictures"
    folder.mkdir(parents=True, exist_ok=True)
    shown = {}
    for number in range(count):
        pixels = digits.images(torch.tensor([number]))[0, 0].mul(255).byte().numpy()
        Image.fromarray(pixels).save(folder / f"{number:04d}.png")
        shown[f"{number:04d}.png"] = str(int(digits.factors(torch.tensor([number]))))
    return shown


def write_lists(folder: Path, shown: dict[str, str], seed: int = 0) -> None:
    """groups.csv: pictures of one digit belong together. pairs.csv: for every picture another of the same digit."""
    drawn, of_digit = random.Random(seed), {}
    for name, digit in shown.items():
        of_digit.setdefault(digit, []).append(name)
    pairs = {tuple(sorted(drawn.sample(of_digit[digit], 2))) for digit in shown.values()}
    for file, rows in {"groups.csv": shown.items(), "pairs.csv": sorted(pairs)}.items():
        with open(folder / file, "w", newline="") as text:
            csv.writer(text).writerows(rows)


def learn(folder: Path, steps: int) -> dict[str, uw.Trained]:
    """Both methods on the same pictures, each told by its own list."""
    data = uw.load_data(folder / "pictures", groups=folder / "groups.csv", size=16)
    options = dict(steps=steps, batch=32, net="small", lr=1e-3)
    told = {"ada_gvae": f"pairs(file={str(folder / 'pairs.csv')!r})", "ml_vae": "groups(by=['group'], size=4)"}
    return {
        method: uw.train(method, data, supervision=text, out=folder / "runs" / method, **options)
        for method, text in told.items()
    }


def known(codes: np.ndarray, classes: np.ndarray) -> float:
    """The share of pictures held out whose class a linear reading of the codes tells."""
    return float(cross_val_score(LogisticRegression(max_iter=1000), codes, classes, cv=3).mean())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pictures", type=int, default=1000)
    parser.add_argument("--steps", type=int, default=2000)
    parser.add_argument("--folder", help="where pictures, lists and runs go; a temporary folder if not said")
    arguments = parser.parse_args()
    folder = Path(arguments.folder or tempfile.mkdtemp(prefix="pairs_and_groups-"))
    shown = write_pictures(folder, arguments.pictures)
    write_lists(folder, shown)
    for method, run in learn(folder, arguments.steps).items():
        codes, start = run.encode(run.data.images(torch.arange(run.data.size))), 0
        for part in run.representation.parts or (Part("whole", codes.shape[1]),):
            own, start = codes[:, start : start + part.size], start + part.size
            print(f"{method}: the {part.name} code knows {known(own, np.array([*shown.values()])):.0%} of the digits")


if __name__ == "__main__":
    main()
