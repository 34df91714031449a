"""Faces with partly known identities and lights, after Siddharth et al. 2017.

python examples/faces.py --steps 20000 --out runs/faces

The program writes photographs and a table that names a third of the identities and of the lights, and trains
generalized_m2 on them. Then it decodes faces under other lights and with other identities, and writes a report.
Without --data it downloads the photographs (Extended Yale B, free for research).
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
import torch
import torch.nn.functional as F
from PIL import Image
from torch import Tensor

import unweave as uw
from unweave.report import report

# r reflectance, l light, i identity, s shading, which depends on light and identity instead of the image
GRAPH = "q(r|x) q(l|x) q(i|x) q(s|l,i); p(x|r,l,i,s); labels: i, l; r: normal(10), s: normal(10)"


class Faces(NamedTuple):
    images: np.ndarray  # [N, 1, H, W]
    subject: np.ndarray  # [N]
    light: np.ndarray  # [N]


def read_faces(path: str, size: int) -> Faces:
    """Read CroppedYale.zip, its folder or an .npz with the same arrays; download the photographs if path is empty."""
    if path.endswith(".npz"):
        with np.load(path) as arrays:
            images, subject = torch.from_numpy(arrays["images"])[:, None] / 255, arrays["subject"]
            direction = np.stack([arrays["azimuth_deg"], arrays["elevation_deg"]], 1)
    else:
        data = uw.load_data("extended_yale_b", **({"path": path} if path else {}))
        index = torch.arange(data.size)
        images, factors = data.images(index), data.factors(index).numpy()
        subject, direction = factors[:, 0], factors[:, 1:]
    light = np.unique(direction, axis=0, return_inverse=True)[1].ravel()
    images = F.interpolate(images, (size, size), mode="area").numpy()
    return Faces(images, np.unique(subject, return_inverse=True)[1], light)


def write_faces(faces: Faces, out: Path, share: float, seed: int) -> None:
    """Write the images, and a table with this share of the identities and, independently, of the lights."""
    (out / "images").mkdir(parents=True)
    files = [f"{index:05d}.png" for index in range(len(faces.images))]
    for file, image in zip(files, faces.images):
        save_image(image[0], out / "images" / file)
    table = pd.DataFrame({"subject": faces.subject, "light": faces.light}, index=pd.Index(files, name="file"))
    known = np.random.default_rng(seed).random(table.shape) < share
    table.astype("Int64").where(known).to_csv(out / "labels.csv")


def save_image(image: np.ndarray, path: Path) -> None:
    Image.fromarray((image * 255).round().astype(np.uint8)).save(path)


def unlabelled_accuracy(model: uw.TrainedModel, faces: Faces) -> list[float]:
    """Return the accuracies of identity and light on the images without that label."""
    index = torch.arange(model.data.size)
    labels = model.data.factors(index).numpy()
    batches = [model.method.classify(model.data.images(part)) for part in index.split(256)]
    accuracies = []
    for k, truth in enumerate((faces.subject, faces.light)):
        predicted = torch.cat([probabilities[k] for probabilities in batches]).argmax(1).numpy()
        correct = np.array(model.data.factor_values[k])[predicted] == truth
        accuracies.append(float(correct[labels[:, k] < 0].mean()))
    return accuracies


class Editor:
    """Decodes faces with another identity or light."""

    def __init__(self, model: uw.TrainedModel, faces: Faces) -> None:
        self.model, self.faces = model, faces

    @torch.no_grad()
    def change(self, image: Tensor, subject: int | None = None, light: int | None = None) -> Tensor:
        """Return the face in an image [1, H, W] with this identity or light."""
        values = self.model.data.factor_values
        classes = [-1 if value is None else values[k].index(value) for k, value in enumerate((subject, light))]
        autoencoder = self.model.method.autoencoder
        return autoencoder.decode(autoencoder.encode(image[None], torch.tensor([classes])))[0]

    def photograph(self, subject: int, light: int) -> Tensor:
        """Return the photograph [1, H, W] of a person under a light, or black if it does not exist."""
        index = np.flatnonzero((self.faces.subject == subject) & (self.faces.light == light))[:1]
        data = self.model.data
        return data.images(torch.from_numpy(index))[0] if len(index) else torch.zeros(data.shape)

    def relighting(self, subjects: list[int], lights: list[int]) -> list[list[Tensor]]:
        """Per person a row of photographs under the lights, and a row decoded from the first photograph."""
        rows = []
        for subject in subjects:
            first = self.photograph(subject, lights[len(lights) // 2])
            rows.append([first, *(self.photograph(subject, light) for light in lights)])
            rows.append([self.change(first), *(self.change(first, light=light) for light in lights)])
        return rows

    def swaps(self, subjects: list[int], lights: list[int]) -> list[list[Tensor]]:
        """A row of people; below it photographs under several lights, decoded with the identities of that row."""
        people = [self.photograph(subject, lights[len(lights) // 2]) for subject in subjects]
        rows = [[torch.ones(self.model.data.shape), *people]]
        for subject, light in zip(subjects, lights[1:]):
            first = self.photograph(subject, light)
            rows.append([first, *(self.change(first, subject=other) for other in subjects)])
        return rows


def save_grid(rows: list[list[Tensor]], path: Path) -> None:
    grid = torch.cat([torch.cat(row, 2) for row in rows], 1)[0]
    save_image(grid.clamp(0, 1).numpy(), path)
    print(path)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", default="", help="CroppedYale.zip, its folder, or an .npz; default: download")
    parser.add_argument("--labels", type=float, default=1 / 3, help="share of known identities and lights")
    parser.add_argument("--steps", type=int, default=20_000)
    parser.add_argument("--lr", type=float, default=1e-3)
    parser.add_argument("--net", default="locatello")
    parser.add_argument("--size", type=int, default=64, help="side of the images in pixels")
    parser.add_argument("--out", type=Path, default=Path("runs/faces"))
    arguments = parser.parse_args()
    out = arguments.out
    if out.exists():
        parser.error(f"out must be a new folder, got '{out}'")
    faces = read_faces(arguments.data, arguments.size)
    write_faces(faces, out, arguments.labels, seed=0)
    data = uw.load_data(out / "images", factors=out / "labels.csv", size=arguments.size)
    uw.train(
        "generalized_m2", data, supervision="labels(factors=['subject', 'light'])", graph=GRAPH, discrete="relaxed",
        net=arguments.net, steps=arguments.steps, batch=32, lr=arguments.lr, alpha=200, out=out / "run",
        observe=lambda p: print(p.step, {name: round(value, 2) for name, value in p.logs.items()}),
    )  # fmt: skip
    model = uw.load(out / "run")  # on the CPU
    subject, light = unlabelled_accuracy(model, faces)
    print(f"accuracy on images without the label: {subject:.1%} of the identities, {light:.1%} of the lights")
    subjects, lights = (np.linspace(0, column.max(), 9).astype(int).tolist()[1:-1] for column in faces[1:])
    editor = Editor(model, faces)
    save_grid(editor.relighting(subjects, lights), out / "relight.png")
    save_grid(editor.swaps(subjects, lights), out / "swap.png")
    print(report([out / "run"], out / "report.html"))


if __name__ == "__main__":
    main()
