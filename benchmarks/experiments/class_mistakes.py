"""Which test images finished runs misclassify, and which labelled images of that class they were trained on.

    python benchmarks/experiments/class_mistakes.py wrong.csv runs/study/*100-labels*
    python benchmarks/experiments/class_mistakes.py wrong.csv --label 7 --picture sevens.png

The first command writes every misclassified test image of the runs (run, image, true, predicted). Both print the most
frequent mistakes of each run. The picture shows the labelled images of one class for five seeds, and those test images
of the class that most runs misclassify, among the runs that often predict the same wrong class for it. Also printed is
the class of the labelled image that is nearest to each of these test images in pixel space.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import torch
from PIL import Image

from unweave.data import Dataset, load_data, parse_supervision
from unweave.evaluation.classification import (
    class_probabilities,
    classifier,
    image_batches,
    label_mappings,
    true_classes,
)
from unweave.model import load
from unweave.report.images import image_grid
from unweave.runs import write_atomic
from unweave.studies.study import held_out_data

COMMON = 50  # least number of images predicted as the same wrong class
DRAWS = 5  # seeds whose labelled images are shown


def arguments_given() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("wrong", type=Path, help="CSV of the mistakes, written if runs are given, else read")
    parser.add_argument("runs", nargs="*", type=Path)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--label", type=int, help="class shown in the picture")
    parser.add_argument("--picture", type=Path)
    parser.add_argument("--data", default="mnist(part='train', size=28)", help="data of the picture")
    parser.add_argument("--supervision", default="labels(n=100, balanced=True)", help="supervision of the picture")
    given = parser.parse_args()
    if (given.picture is None) != (given.label is None):
        parser.error("--picture and --label must be given together")
    return given


def wrong_images(folder: Path, device: str) -> pd.DataFrame:
    run = load(folder, device=device)
    test = held_out_data(run.data).to(device)
    (probs_NY,), (mapping,) = class_probabilities(classifier(run), image_batches(run, test)), label_mappings(run)
    true_N, predicted_N = true_classes(mapping, test), probs_NY.argmax(1).numpy()
    assert true_N is not None
    image_W, name = np.flatnonzero(predicted_N != true_N), f"{folder.parent.name}/{folder.name}"
    return pd.DataFrame({"run": name, "image": image_W, "true": true_N[image_W], "predicted": predicted_N[image_W]})


def most_frequent(wrong: pd.DataFrame) -> pd.DataFrame:
    """Return the number of mistakes of each run and its three most frequent confusions."""
    lines = []
    for run, rows in wrong.groupby("run", sort=False):
        pairs = rows.groupby(["true", "predicted"]).size().sort_values(ascending=False, kind="stable").head(3)
        text = ", ".join(f"{true} as {predicted}: {images}" for (true, predicted), images in pairs.items())
        lines.append({"run": run, "wrong": len(rows), "most frequent": text})
    return pd.DataFrame(lines)


def missed(wrong: pd.DataFrame, label: int) -> tuple[list[int], int]:
    """Return the test images of a class that most runs with a frequent confusion misclassify, and how many runs."""
    own = wrong[wrong["true"] == label]
    often = own.groupby(["run", "predicted"]).filter(lambda part: len(part) >= COMMON)
    times = often.groupby("image").size()
    runs = often["run"].nunique()
    return [int(image) for image in times.index[times > runs / 2]], runs


def labelled(data: Dataset, supervision: str, seed: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the labelled images of a run with this seed, and their classes."""
    used = parse_supervision(supervision, data).labelled_set(data, seed)
    assert used is not None
    index_N, labels_NL = used.table
    return data.images(index_N), labels_NL[:, 0]


def nearest(images_BCHW: torch.Tensor, labelled_NCHW: torch.Tensor, class_N: torch.Tensor) -> str:
    """Return the most frequent classes of the nearest labelled images, as text."""
    near_B = class_N[torch.cdist(images_BCHW.flatten(1), labelled_NCHW.flatten(1)).argmin(1)]
    shares = near_B.bincount().div(len(near_B)).sort(descending=True, stable=True)
    return ", ".join(f"{int(c)}: {share:.0%}" for share, c in zip(shares[0][:3], shares[1][:3], strict=True))


def rows_of(images_BCHW: torch.Tensor, across: int) -> np.ndarray:
    """Return the images in rows, dark on light."""
    tiles = [*(1.0 - images_BCHW).numpy(), *[None] * (-len(images_BCHW) % across)]
    return image_grid([tiles[at : at + across] for at in range(0, len(tiles), across)])


def draw(given: argparse.Namespace, wrong: pd.DataFrame) -> None:
    data = load_data(given.data)
    images, runs = missed(wrong, given.label)
    if not images:
        raise SystemExit(f"--label {given.label}: no run predicts the same wrong class for {COMMON} of its images")
    draws, missed_BCHW = (
        [labelled(data, given.supervision, seed) for seed in range(DRAWS)],
        held_out_data(data).images(torch.tensor(images)),
    )
    for seed, (labelled_NCHW, class_N) in enumerate(draws):
        print(f"nearest labelled image, seed {seed}: {nearest(missed_BCHW, labelled_NCHW, class_N)}")
    shown = torch.cat([images_NCHW[class_N == given.label] for images_NCHW, class_N in draws])
    sheets = rows_of(shown, len(shown) // DRAWS), rows_of(missed_BCHW, 18)
    widths = [sheet.shape[1] / sheet.shape[0] for sheet in sheets]
    figure, (left, right) = plt.subplots(1, 2, figsize=(11, 2.3), width_ratios=widths, subplot_kw={"frame_on": False})
    for axes, sheet in zip((left, right), sheets, strict=True):
        axes.imshow(Image.fromarray(sheet).convert("RGBA"))
        axes.set(xticks=[], yticks=[])
        axes.tick_params(length=0)
    height = sheets[0].shape[0] / DRAWS
    left.set_yticks([height * (seed + 0.5) for seed in range(DRAWS)], [str(seed) for seed in range(DRAWS)])
    left.set_ylabel("seed")
    left.set_title(f"labelled images of class {given.label}", fontsize=9)
    right.set_title(f"{len(images)} test images of it, misclassified by most of {runs} runs", fontsize=9)
    figure.tight_layout(w_pad=3)
    figure.savefig(given.picture, dpi=130)


def main() -> None:
    given = arguments_given()
    if given.runs:
        wrong = pd.concat([wrong_images(folder, given.device) for folder in given.runs], ignore_index=True)
        write_atomic(given.wrong, wrong.to_csv(index=False).encode())
    else:
        wrong = pd.read_csv(given.wrong)
    print(most_frequent(wrong).to_string(index=False))
    if given.picture is not None:
        draw(given, wrong)


if __name__ == "__main__":
    main()
