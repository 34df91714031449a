"""A folder of pictures, a table that names what a hundred of them show, and a model that names the rest.

python examples/few_labels.py --steps 3000

It makes the folder itself, from the bundled handwritten digits, and then does what you would do with your own:

    unweave train m2 --data few_labels/pictures --factors few_labels/labels.csv --supervision labels ...
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
from unweave.errors import UserError

NAMES = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")
PICTURES = 1797


def make_pictures(out: Path, labelled: int) -> pd.Series:
    """A folder of all pictures and a table that names so many of them; returns all names, by file."""
    digits = load_digits()
    (out / "pictures").mkdir(parents=True, exist_ok=True)
    files = [f"{number:04d}.png" for number in range(len(digits.images))]
    for file, image in zip(files, digits.images):
        Image.fromarray((image * 255 / 16).astype(np.uint8)).save(out / "pictures" / file)
    names = pd.Series([NAMES[digit] for digit in digits.target], index=files)
    known = names.sample(labelled, random_state=0)
    known.sort_index().rename_axis("file").rename("digit").to_csv(out / "labels.csv")
    return names


def check(arguments: argparse.Namespace) -> None:
    """Refuses before anything is written."""
    if arguments.steps < 1:
        raise UserError(f"steps {arguments.steps} is too small; use 1 or more")
    if not 2 <= arguments.labelled <= PICTURES:
        raise UserError(f"labelled {arguments.labelled} is out of range; use 2 to {PICTURES}, as many as there are")
    if arguments.out.is_dir() and any(arguments.out.iterdir()):
        raise UserError(f"out '{arguments.out}' is not empty; give a folder that is new, or remove it")


def command(words: str) -> None:
    """What you would type."""
    print(f"$ unweave {words}")
    app(shlex.split(words), standalone_mode=False)


def run(arguments: argparse.Namespace) -> None:
    check(arguments)
    out, quoted = arguments.out, shlex.quote(str(arguments.out))
    names = make_pictures(out, arguments.labelled)
    own = f"--data {quoted}/pictures --factors {quoted}/labels.csv --size 8 --supervision labels"
    command(f"train m2 {own} --lr 1e-3 --steps {arguments.steps} --out {quoted}/run --quiet")
    command(f"predict {quoted}/run --out {quoted}/predicted.csv")
    command(f"report {quoted}/run -o {quoted}/report.html")

    # What a user of a folder of their own cannot do: look up the names that were kept back.
    table = pd.read_csv(out / "predicted.csv").set_index("file")
    rest = table[table["digit_true"].isna()]
    sure = rest[rest["digit_confidence"] > 0.9]
    for what, some in (("all", rest), ("more than 90 % sure", sure)):
        if len(some):
            right = (some["digit"] == names[some.index]).mean()
            print(f"{100 * right:.1f} % right of the {len(some)} pictures without a label ({what})")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=3000)
    parser.add_argument("--labelled", type=int, default=100)
    parser.add_argument("--out", type=Path, default=Path("few_labels"))
    arguments = parser.parse_args()
    if failed := run_command(lambda: run(arguments)):
        sys.exit(failed)


if __name__ == "__main__":
    main()
