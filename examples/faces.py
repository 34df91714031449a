"""Faces after Siddharth et al. 2017: who it is and where the light stands are known of some photographs.

python examples/faces.py --steps 20000 --out runs/faces

Writes the photographs into a folder with a table of what is known of them, trains on that, and draws people under
lights of our choice and faces with exchanged identities: in two pictures, and in a report. Without --data the
photographs are downloaded (Extended Yale B, free for research).
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

# r reflectance, l light, i identity, s shading: it follows from light and identity, not from the image
GRAPH = "q(r|x) q(l|x) q(i|x) q(s|l,i); p(x|r,l,i,s); labels: i, l; r: normal(10), s: normal(10)"


class Faces(NamedTuple):
    """Photographs [N, 1, H, W], who is on each [N] and under which light [N], by number."""

    images: np.ndarray
    subject: np.ndarray
    light: np.ndarray


def read_faces(where: str, size: int) -> Faces:
    """From CroppedYale.zip or its folder, from an .npz with the same in arrays, or ("") downloaded."""
    if where.endswith(".npz"):
        with np.load(where) as arrays:
            images, subject = torch.from_numpy(arrays["images"])[:, None] / 255, arrays["subject"]
            direction = np.stack([arrays["azimuth_deg"], arrays["elevation_deg"]], 1)
    else:
        data = uw.load_data("extended_yale_b", **({"path": where} if where else {}))
        every = torch.arange(data.size)
        images, factors = data.images(every), data.factors(every).numpy()
        subject, direction = factors[:, 0], factors[:, 1:]
    light = np.unique(direction, axis=0, return_inverse=True)[1].ravel()
    images = F.interpolate(images, (size, size), mode="area").numpy()
    return Faces(images, np.unique(subject, return_inverse=True)[1], light)


def write_faces(faces: Faces, out: Path, share: float, seed: int) -> None:
    """A folder of pictures and a table with this share of identities and, chosen apart, this share of lights."""
    (out / "pictures").mkdir(parents=True, exist_ok=True)
    files = [f"{number:05d}.png" for number in range(len(faces.images))]
    for file, image in zip(files, faces.images):
        Image.fromarray((image[0] * 255).round().astype(np.uint8)).save(out / "pictures" / file)
    table = pd.DataFrame({"subject": faces.subject, "light": faces.light}, index=pd.Index(files, name="file"))
    known = np.random.default_rng(seed).random(table.shape) < share
    table.astype("Int64").where(known).to_csv(out / "known.csv")


def hidden_accuracy(model: uw.TrainedModel, faces: Faces) -> list[float]:
    """How many of the identities, and of the lights, that were hidden in training are told rightly."""
    every = torch.arange(model.data.size)
    told = model.data.factors(every).numpy()
    found = [model.method.classify(model.data.images(rows)) for rows in every.split(256)]
    shares = []
    for k, truth in enumerate((faces.subject, faces.light)):
        guess = torch.cat([probabilities[k] for probabilities in found]).argmax(1).numpy()
        value = np.array(model.data.factor_values[k])[guess]
        shares.append(float((value == truth)[told[:, k] < 0].mean()))
    return shares


@torch.no_grad()
def imagine(model: uw.TrainedModel, image: Tensor, subject: int = -1, light: int = -1) -> Tensor:
    """The face in this image [1, H, W] as someone else, or in another light; -1 stays as it is."""
    values = model.data.factor_values
    wanted = [-1 if number < 0 else values[k].index(number) for k, number in enumerate((subject, light))]
    autoencoder = model.method.autoencoder
    return autoencoder.decode(autoencoder.encode(image[None], torch.tensor([wanted])))[0]


def photograph(model: uw.TrainedModel, faces: Faces, subject: int, light: int) -> Tensor:
    """The real one [1, H, W]; black where there is none."""
    found = np.flatnonzero((faces.subject == subject) & (faces.light == light))[:1]
    return model.data.images(torch.from_numpy(found))[0] if len(found) else torch.zeros(model.data.shape)


def draw_relighting(model: uw.TrainedModel, faces: Faces, people: list[int], lights: list[int], path: Path) -> None:
    """For each person the real photographs under these lights; below them, what the leftmost one is made into."""
    rows = []
    for person in people:
        start = photograph(model, faces, person, lights[len(lights) // 2])
        rows.append([start, *(photograph(model, faces, person, light) for light in lights)])
        rows.append([imagine(model, start), *(imagine(model, start, light=light) for light in lights)])
    save_grid(rows, path)


def draw_swaps(model: uw.TrainedModel, faces: Faces, people: list[int], lights: list[int], path: Path) -> None:
    """Above the people; below, photographs under several lights, each with the identity of everyone above."""
    shown = [photograph(model, faces, person, lights[len(lights) // 2]) for person in people]
    rows = [[torch.ones(model.data.shape), *shown]]
    for person, light in zip(people, lights[1:], strict=False):
        start = photograph(model, faces, person, light)
        rows.append([start, *(imagine(model, start, subject=other) for other in people)])
    save_grid(rows, path)


def save_grid(rows: list[list[Tensor]], path: Path) -> None:
    """Images [1, H, W] in rows and columns."""
    grid = torch.cat([torch.cat(row, 2) for row in rows], 1)[0]
    Image.fromarray((grid.clamp(0, 1) * 255).round().byte().numpy()).save(path)
    print(path)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", default="", help="CroppedYale.zip, its folder, or an .npz; else it is downloaded")
    parser.add_argument("--labels", type=float, default=1 / 3, help="share of identities and of lights that are known")
    parser.add_argument("--steps", type=int, default=20_000)
    parser.add_argument("--lr", type=float, default=1e-3)
    parser.add_argument("--net", default="locatello")
    parser.add_argument("--size", type=int, default=64, help="side of the images in pixels")
    parser.add_argument("--out", type=Path, default=Path("runs/faces"))
    arguments = parser.parse_args()
    out = arguments.out
    if out.is_dir() and any(out.iterdir()):
        parser.error(f"out '{out}' is not empty; give a folder that is new, or remove it")
    faces = read_faces(arguments.data, arguments.size)
    write_faces(faces, out, arguments.labels, seed=0)
    data = uw.load_data(out / "pictures", factors=out / "known.csv", size=arguments.size)
    uw.train(
        "generalized_m2", data, supervision="labels(factors=['subject', 'light'])", graph=GRAPH, discrete="relaxed",
        net=arguments.net, steps=arguments.steps, batch=32, lr=arguments.lr, alpha=200, out=out / "run",
        observe=lambda p: print(p.step, {name: round(value, 2) for name, value in p.logs.items()}),
    )  # fmt: skip
    model = uw.load(out / "run")  # on the CPU, wherever it was trained
    subject, light = hidden_accuracy(model, faces)
    print(f"of what was hidden, {subject:.1%} of the identities and {light:.1%} of the lights are told rightly")
    people, lights = (np.linspace(0, column.max(), 9).astype(int).tolist()[1:-1] for column in faces[1:])
    draw_relighting(model, faces, people, lights, out / "relight.png")
    draw_swaps(model, faces, people, lights, out / "swap.png")
    print(report([out / "run"], out / "report.html"))


if __name__ == "__main__":
    main()
