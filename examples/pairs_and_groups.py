"""Learn from pairs and groups of your own images, listed in files: six methods, two seeds each.

python examples/pairs_and_groups.py --steps 2000
python examples/pairs_and_groups.py --methods ada_gvae,ml_vae

The program writes images of handwritten digits at three brightnesses, so that the codes can be checked. For images of
your own, start at `train_methods`.
"""

from __future__ import annotations

import argparse
import csv
import random
import tempfile
from collections import defaultdict
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from PIL import Image
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_score

import unweave as uw
from unweave.contract import Part
from unweave.training.sweep import fit

BRIGHTNESS = (255, 190, 130)
GROUPS = "groups(by=['group'], size=4)"
PAIRS = "pairs(file='{folder}/pairs.csv')"
METHODS = {
    "ada_gvae": dict(supervision=PAIRS, batch=32),
    "ada_ml_vae": dict(supervision=PAIRS, batch=32),
    "group_tcvae": dict(supervision=PAIRS, batch=32, discriminator_width=100),  # uses the third column of the pairs
    "ml_vae": dict(supervision=GROUPS, batch=32),
    "gvae": dict(supervision=GROUPS, batch=32),
    "f_statistic": dict(supervision="groups(by=['group'], size=4, distinct=True)", batch=10),  # one row per digit
}


class ImageFile(NamedTuple):
    name: str
    digit: int
    brightness: int


def write_images(folder: Path, count: int) -> list[ImageFile]:
    data, images = uw.load_data("digits(size=16)"), []
    folder.mkdir(parents=True, exist_ok=True)
    for index in range(count):
        observation, brightness = torch.tensor([index]), index % len(BRIGHTNESS)
        pixels = data.images(observation)[0, 0].mul(BRIGHTNESS[brightness]).byte().numpy()
        images.append(ImageFile(f"{index:04d}.png", int(data.factors(observation)), brightness))
        Image.fromarray(pixels).save(folder / images[-1].name)
    return images


def write_lists(folder: Path, images: list[ImageFile], seed: int = 0) -> None:
    """Write groups.csv, one group per digit, and pairs.csv: pairs share the digit (content) or brightness (style)."""
    generator, pairs = random.Random(seed), {}
    for shared, position in (("content", 1), ("style", 2)):
        groups = defaultdict(list)
        for image in images:
            groups[image[position]].append(image.name)
        for image in images:
            pairs.setdefault(tuple(sorted(generator.sample(groups[image[position]], 2))), shared)
    write_csv(folder / "groups.csv", [(image.name, image.digit) for image in images])
    write_csv(folder / "pairs.csv", [(*pair, shared) for pair, shared in pairs.items()])


def write_csv(path: Path, rows: list[tuple]) -> None:
    with path.open("w", newline="") as file:
        csv.writer(file).writerows(rows)


def train_methods(folder: Path, methods: list[str], steps: int) -> dict[str, uw.TrainedModel]:
    """Train two seeds of each method as one fleet; return the model of the first seed."""
    data = uw.load_data(folder / "images", groups=folder / "groups.csv", size=16)
    models = {}
    for name in methods:
        settings = METHODS[name] | dict(supervision=METHODS[name]["supervision"].format(folder=folder))
        run = dict(method=name, data=data, steps=steps, net="small", lr=1e-3, **settings)
        models[name] = fit([{**run, "seed": seed} for seed in (0, 1)], out=folder / "runs")[0]
    return models


def accuracy(codes: np.ndarray, classes: np.ndarray) -> float:
    """Cross-validated accuracy of a linear classifier of the codes."""
    return float(cross_val_score(LogisticRegression(max_iter=1000), codes, classes, cv=3).mean())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--images", type=int, default=1000)
    parser.add_argument("--steps", type=int, default=2000)
    parser.add_argument("--methods", default=",".join(METHODS))
    parser.add_argument("--folder", type=Path, help="for images, lists and runs; default: a temporary folder")
    arguments = parser.parse_args()
    folder = arguments.folder or Path(tempfile.mkdtemp(prefix="pairs_and_groups-"))
    images = write_images(folder / "images", arguments.images)
    write_lists(folder, images)
    digits = np.array([image.digit for image in images])
    for name, model in train_methods(folder, arguments.methods.split(","), arguments.steps).items():
        codes, start = model.encode(model.data.images(torch.arange(model.data.size))), 0
        for part in model.representation.parts or (Part("whole", codes.shape[1]),):
            part_codes, start = codes[:, start : start + part.size], start + part.size
            print(f"{name}: accuracy {accuracy(part_codes, digits):.0%} on the digits from the {part.name} code")


if __name__ == "__main__":
    main()
