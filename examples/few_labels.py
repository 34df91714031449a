"""Label a hundred images of a folder and let a model predict the classes of the others.

python examples/few_labels.py --steps 3000

The program writes the folder itself, from the digits bundled with scikit-learn, and then runs these commands:

    unweave train m2 --data few_labels/images --factors few_labels/labels.csv --supervision labels ...
    unweave predict few_labels/run --out few_labels/predicted.csv
    unweave report few_labels/run -o few_labels/report.html
"""

from __future__ import annotations

import argparse
import shlex
import sys
from pathlib import Path

import numpy as np
import pandas as pd
from PIL import Image
from sklearn.datasets import load_digits  # type: ignore[import-untyped]

from unweave.cli.app import app, run_command

CLASSES = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")
NUM_IMAGES = 1797


def write_images(out: Path, num_labels: int) -> pd.Series:
    """Write all images and a table of `num_labels` labels; return the true class of each file."""
    digits = load_digits()
    (out / "images").mkdir(parents=True)
    files = [f"{index:04d}.png" for index in range(len(digits.images))]
    for file, image in zip(files, digits.images):
        Image.fromarray((image * 255 / 16).astype(np.uint8)).save(out / "images" / file)
    classes = pd.Series([CLASSES[digit] for digit in digits.target], index=files)
    labels = classes.sample(num_labels, random_state=0).sort_index()
    labels.rename_axis("file").rename("digit").to_csv(out / "labels.csv")
    return classes


def unweave(command: str) -> None:
    """Run a command of Unweave, as in a shell."""
    print(f"$ unweave {command}")
    app(shlex.split(command), standalone_mode=False)


def run(out: Path, num_labels: int, steps: int) -> None:
    classes, folder = write_images(out, num_labels), shlex.quote(str(out))
    data = f"--data {folder}/images --factors {folder}/labels.csv --size 8 --supervision labels"
    unweave(f"train m2 {data} --lr 1e-3 --steps {steps} --out {folder}/run --quiet")
    unweave(f"predict {folder}/run --out {folder}/predicted.csv")
    unweave(f"report {folder}/run -o {folder}/report.html")

    table = pd.read_csv(out / "predicted.csv").set_index("file")
    unlabelled = table[table["digit_true"].isna()]
    confident = unlabelled[unlabelled["digit_confidence"] > 0.9]
    for title, rows in (("unlabelled images", unlabelled), ("those with a confidence above 90 %", confident)):
        if len(rows):
            print(f"accuracy {(rows['digit'] == classes[rows.index]).mean():.1%} on {len(rows)} {title}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=3000)
    parser.add_argument("--labels", type=int, default=100, help="number of labelled images")
    parser.add_argument("--out", type=Path, default=Path("few_labels"))
    arguments = parser.parse_args()
    if not 2 <= arguments.labels <= NUM_IMAGES:
        parser.error(f"labels must be from 2 to {NUM_IMAGES}, got {arguments.labels}")
    if arguments.out.exists():
        parser.error(f"out must be a new folder, got '{arguments.out}'")
    if failed := run_command(lambda: run(arguments.out, arguments.labels, arguments.steps)):
        sys.exit(failed)


if __name__ == "__main__":
    main()
