"""Which images finished runs put in the wrong class, and what they had been told of that class.

    python benchmarks/class_mistakes.py wrong.csv runs/study/*100-labels*
    python benchmarks/class_mistakes.py wrong.csv --label 7 --picture sevens.png

The first writes every test image in the wrong class of runs of the few-label studies (run, image, true, told). Both
print each run's commonest mistakes. The picture shows the labelled images of one class in the draws of five seeds, and
those test images of it that most of the runs with a mistake that common have wrong.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import torch

from unweave.classes import class_chances, classifier, image_batches
from unweave.data import Dataset, load_data
from unweave.data.kinds import Labels
from unweave.data.labelling import LabelledSet
from unweave.data.supervision import read_supervision
from unweave.runs import write_atomic
from unweave.studies.study import held_out
from unweave.trained import load

COMMON = 50  # images taken for the same other class


def arguments_given() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("wrong", type=Path, help="CSV of the mistakes: written if runs are given, else read")
    parser.add_argument("runs", nargs="*", type=Path)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--label", type=int, help="the class of the picture")
    parser.add_argument("--picture", type=Path)
    parser.add_argument("--data", default="mnist(part='train', size=28)", help="of the picture")
    parser.add_argument("--supervision", default="labels(n=100, balanced=True)", help="of the picture")
    return parser.parse_args()


def wrong_images(folder: Path, device: str) -> pd.DataFrame:
    run = load(folder, device=device)
    test = held_out(run.data).to(device)
    (chance_NY,) = class_chances(classifier(run), image_batches(run, test))
    told_N = chance_NY.argmax(1)
    true_N = test.factors(torch.arange(test.size, device=device))[:, 0].cpu()
    image_W = (told_N != true_N).nonzero()[:, 0]
    return pd.DataFrame({"run": folder.name, "image": image_W, "true": true_N[image_W], "told": told_N[image_W]})


def commonest(wrong: pd.DataFrame) -> pd.DataFrame:
    """Of every run the number of mistakes and of those of the three commonest kinds."""
    lines = []
    for run, found in wrong.groupby("run", sort=False):
        kinds = found.groupby(["true", "told"]).size().sort_values(ascending=False, kind="stable").head(3)
        said = ", ".join(f"{true} for {told}: {images}" for (true, told), images in kinds.items())
        lines.append({"run": run, "wrong": len(found), "taken": said})
    return pd.DataFrame(lines)


def missed(wrong: pd.DataFrame, label: int) -> tuple[list[int], int]:
    """Test images of a class that most of the runs have wrong which often take it for the same other one; how many."""
    own = wrong[wrong["true"] == label]
    often = own.groupby(["run", "told"]).filter(lambda part: len(part) >= COMMON)
    times = often.groupby("image").size()
    runs = often["run"].nunique()
    return [int(image) for image in times.index[times > runs / 2]], runs


def labelled(data: Dataset, supervision: str, label: int, seed: int) -> torch.Tensor:
    want = read_supervision(supervision, data)
    assert isinstance(want, Labels)
    index_N, labels_NL = LabelledSet(data, want, torch.tensor(seed)).table
    return data.images(index_N[labels_NL[:, 0] == label])


def strip(images_BCHW: torch.Tensor, across: int) -> np.ndarray:
    """Images side by side in rows, a line between."""
    framed = torch.nn.functional.pad(images_BCHW, (1, 1, 1, 1), value=0.35).numpy()[:, 0]
    blank = [np.zeros_like(framed[0])] * (-len(framed) % across)
    tiles = [*framed, *blank]
    return np.vstack([np.hstack(tiles[at : at + across]) for at in range(0, len(tiles), across)])


def draw(given: argparse.Namespace, wrong: pd.DataFrame) -> None:
    data = load_data(given.data)
    images, runs = missed(wrong, given.label)
    rows = [strip(labelled(data, given.supervision, given.label, seed), 10) for seed in range(5)]
    tests = strip(held_out(data).images(torch.tensor(images)), 18)
    height = rows[0].shape[0]
    figure, (left, right) = plt.subplots(
        1, 2, figsize=(11, 2.3), width_ratios=[rows[0].shape[1] * tests.shape[0] / (5 * height), tests.shape[1]]
    )
    left.imshow(np.vstack(rows), cmap="gray_r")
    left.set_yticks([height * (seed + 0.5) for seed in range(5)], [str(seed) for seed in range(5)])
    left.set_ylabel("draw of seed")
    left.set_title(f"the labelled images of class {given.label}", fontsize=9)
    right.imshow(tests, cmap="gray_r")
    right.set_yticks([])
    right.set_title(f"{len(images)} test images of it, wrong in most of {runs} runs", fontsize=9)
    for axes in (left, right):
        axes.set_xticks([])
        axes.tick_params(length=0)
        for side in axes.spines.values():
            side.set_visible(False)
    figure.tight_layout()
    figure.savefig(given.picture, dpi=130)


def main() -> None:
    given = arguments_given()
    if given.runs:
        wrong = pd.concat([wrong_images(folder, given.device) for folder in given.runs], ignore_index=True)
        write_atomic(given.wrong, wrong.to_csv(index=False).encode())
    else:
        wrong = pd.read_csv(given.wrong)
    print(commonest(wrong).to_string(index=False))
    if given.picture is not None and given.label is not None:
        draw(given, wrong)


if __name__ == "__main__":
    main()
