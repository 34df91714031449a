"""Which images finished runs put in the wrong class, and what they had been told of that class.

    python benchmarks/experiments/class_mistakes.py wrong.csv runs/study/*100-labels*
    python benchmarks/experiments/class_mistakes.py wrong.csv --label 7 --picture sevens.png

The first writes every test image in the wrong class of runs of the few-label studies (run, image, true, told). Both
print each run's commonest mistakes. The picture shows the labelled images of one class in the draws of five seeds, and
those test images of it that most of the runs with a mistake that common have wrong; with it is printed of what class
the labelled image is that is nearest to each of them, pixel by pixel.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import torch
from PIL import Image

from unweave.data import Dataset, load_data
from unweave.data.supervision.labels import LabelledSet
from unweave.data.supervision.parse import read_supervision
from unweave.data.supervision.specs import Labels
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

COMMON = 50  # images taken for the same other class
DRAWS = 5  # seeds whose labels are shown


def arguments_given() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("wrong", type=Path, help="CSV of the mistakes: written if runs are given, else read")
    parser.add_argument("runs", nargs="*", type=Path)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--label", type=int, help="the class of the picture")
    parser.add_argument("--picture", type=Path)
    parser.add_argument("--data", default="mnist(part='train', size=28)", help="of the picture")
    parser.add_argument("--supervision", default="labels(n=100, balanced=True)", help="of the picture")
    given = parser.parse_args()
    if (given.picture is None) != (given.label is None):
        parser.error("--picture and --label belong together: give both or neither")
    return given


def wrong_images(folder: Path, device: str) -> pd.DataFrame:
    run = load(folder, device=device)
    test = held_out_data(run.data).to(device)
    (chance_NY,), (about,) = class_probabilities(classifier(run), image_batches(run, test)), label_mappings(run)
    true_N, told_N = true_classes(about, test), chance_NY.argmax(1).numpy()
    assert true_N is not None
    image_W, name = np.flatnonzero(told_N != true_N), f"{folder.parent.name}/{folder.name}"
    return pd.DataFrame({"run": name, "image": image_W, "true": true_N[image_W], "told": told_N[image_W]})


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


def labelled(data: Dataset, supervision: str, seed: int) -> tuple[torch.Tensor, torch.Tensor]:
    """The images a run of this seed is told of, and their classes."""
    spec = read_supervision(supervision, data)
    assert isinstance(spec, Labels)
    index_N, labels_NL = LabelledSet(data, spec, torch.tensor(seed)).table
    return data.images(index_N), labels_NL[:, 0]


def nearest(images_BCHW: torch.Tensor, told_NCHW: torch.Tensor, class_N: torch.Tensor) -> str:
    """The commonest classes of the labelled images that are nearest to these."""
    near_B = class_N[torch.cdist(images_BCHW.flatten(1), told_NCHW.flatten(1)).argmin(1)]
    shares = near_B.bincount().div(len(near_B)).sort(descending=True, stable=True)
    return ", ".join(f"{int(c)}: {share:.0%}" for share, c in zip(shares[0][:3], shares[1][:3], strict=True))


def rows_of(images_BCHW: torch.Tensor, across: int) -> np.ndarray:
    """Dark on light, in rows."""
    tiles = [*(1.0 - images_BCHW).numpy(), *[None] * (-len(images_BCHW) % across)]
    return image_grid([tiles[at : at + across] for at in range(0, len(tiles), across)])


def draw(given: argparse.Namespace, wrong: pd.DataFrame) -> None:
    data = load_data(given.data)
    images, runs = missed(wrong, given.label)
    if not images:
        raise SystemExit(f"--label {given.label}: no run takes {COMMON} of its images for one other class")
    draws, missed_BCHW = (
        [labelled(data, given.supervision, seed) for seed in range(DRAWS)],
        held_out_data(data).images(torch.tensor(images)),
    )
    for seed, (told_NCHW, class_N) in enumerate(draws):
        print(f"nearest labelled image, draw of seed {seed}: {nearest(missed_BCHW, told_NCHW, class_N)}")
    told = torch.cat([told_NCHW[class_N == given.label] for told_NCHW, class_N in draws])
    sheets = rows_of(told, len(told) // DRAWS), rows_of(missed_BCHW, 18)
    widths = [sheet.shape[1] / sheet.shape[0] for sheet in sheets]
    figure, (left, right) = plt.subplots(1, 2, figsize=(11, 2.3), width_ratios=widths, subplot_kw={"frame_on": False})
    for axes, sheet in zip((left, right), sheets, strict=True):
        axes.imshow(Image.fromarray(sheet).convert("RGBA"))
        axes.set(xticks=[], yticks=[])
        axes.tick_params(length=0)
    height = sheets[0].shape[0] / DRAWS
    left.set_yticks([height * (seed + 0.5) for seed in range(DRAWS)], [str(seed) for seed in range(DRAWS)])
    left.set_ylabel("draw of seed")
    left.set_title(f"the labelled images of class {given.label}", fontsize=9)
    right.set_title(f"{len(images)} test images of it, wrong in most of {runs} runs", fontsize=9)
    figure.tight_layout(w_pad=3)
    figure.savefig(given.picture, dpi=130)


def main() -> None:
    given = arguments_given()
    if given.runs:
        wrong = pd.concat([wrong_images(folder, given.device) for folder in given.runs], ignore_index=True)
        write_atomic(given.wrong, wrong.to_csv(index=False).encode())
    else:
        wrong = pd.read_csv(given.wrong)
    print(commonest(wrong).to_string(index=False))
    if given.picture is not None:
        draw(given, wrong)


if __name__ == "__main__":
    main()
