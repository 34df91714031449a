"""AAE on MNIST with two latents: do the codes match a mixture prior and a swiss roll prior?

    python benchmarks/experiments/aae_priors.py --path FOLDER --picture docs/img/aae_priors.png

Trains one model per prior on the 60,000 training images and encodes the 10,000 test images. Prints the MMD between
codes and prior samples, the mean distance of a code to the nearest prior sample, and that of a prior sample to the
nearest code. Rows for comparison: other samples of the prior (the optimum), and samples of a normal distribution with
the prior's mean and covariance.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import torch
from torch import Tensor

import unweave as uw
from unweave.ops.mmd import KERNELS, unbiased_mmd
from unweave.ops.priors import prior_sample

ROWS = 3000  # samples whose pairwise distances are computed at once
SIZE = 28


def draws(prior: str, count: int, seed: int) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    noise = {"prior": torch.randn(count, 2, generator=generator), "place": torch.rand(count, 1, generator=generator)}
    return prior_sample(prior, noise)


def normal_like(sample_N2: Tensor, seed: int) -> Tensor:
    """Return as many samples of the normal distribution with the sample's mean and covariance."""
    noise_N2 = torch.randn(sample_N2.shape, generator=torch.Generator().manual_seed(seed))
    return sample_N2.mean(0) + noise_N2 @ torch.linalg.cholesky(torch.cov(sample_N2.T)).T


def distances(codes_N2: Tensor, prior_N2: Tensor) -> tuple[float, float, float]:
    """Return the MMD and the mean distances of codes to the nearest prior sample and of prior samples to codes."""
    between = torch.cdist(codes_N2[:ROWS], prior_N2[:ROWS])
    mmd = unbiased_mmd(codes_N2[:ROWS], prior_N2[:ROWS], KERNELS["imq"])
    return float(mmd), float(between.min(1).values.mean()), float(between.min(0).values.mean())


def mnist(part: str, path: str | None) -> str:
    return f"mnist(part='{part}', size={SIZE}" + (f", path='{path}')" if path else ")")


def train(prior: str, given: argparse.Namespace) -> tuple[Tensor, Tensor]:
    """Return the codes of the test images in random order and their digits."""
    rate = given.lr or f"linear(1e-3, 0, {given.steps})"
    options: dict[str, Any] = dict(net="makhzani", likelihood="gaussian", latents=2, prior=prior, batch=100)
    options |= dict(batch_norm=given.batch_norm == "true", discriminator_steps=given.discriminator_steps)
    options |= dict(discriminator_width=given.discriminator_width, discriminator_depth=given.discriminator_depth)
    data, out = mnist("train", given.path), given.out / prior
    run = uw.train("aae", data, **options, lr=rate, steps=given.steps, seed=given.seed, out=out)
    test = uw.load_data(mnist("test", given.path))
    order_N = torch.randperm(test.size, generator=torch.Generator().manual_seed(0))
    return torch.as_tensor(run.encode(test.images(order_N))), test.factors(order_N)[:, 0]


def measure(prior: str, codes_N2: Tensor) -> None:
    prior_N2 = draws(prior, len(codes_N2), 0)
    rows = {"codes": codes_N2, "draws": draws(prior, len(codes_N2), 1), "normal": normal_like(prior_N2, 2)}
    for name, sample_N2 in rows.items():
        mmd, code, draw = distances(sample_N2, prior_N2)
        print(f"| {prior} | {name} | {mmd:.4f} | {code:.3f} | {draw:.3f} |", flush=True)


def picture(found: dict[str, tuple[Tensor, Tensor]], path: Path) -> None:
    """Save a figure with one row per prior: the codes, coloured by digit, and as many prior samples."""
    figure, axes = plt.subplots(len(found), 2, figsize=(9, 4.5 * len(found)), squeeze=False, layout="constrained")
    for (left, right), (prior, (codes_N2, digit_N)) in zip(axes, found.items(), strict=True):
        dots = left.scatter(*codes_N2.T, c=digit_N, cmap="tab10", s=1)
        right.scatter(*draws(prior, len(codes_N2), 0).T, c="grey", s=1)
        left.set_title(f"{prior}: codes of test images")
        right.set_title("draws of the prior")
        left.legend(*dots.legend_elements(), fontsize=7, loc="upper left")
        for side in (left, right):
            side.set(xlim=(-4, 4), ylim=(-4, 4), aspect="equal")
    figure.savefig(path, dpi=80)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--priors", default="mixture,swiss_roll")
    parser.add_argument("--steps", type=int, default=2000)
    parser.add_argument("--lr", help="default: 1e-3 for all players, falling to 0")
    parser.add_argument("--discriminator-steps", type=int, default=3)
    parser.add_argument("--discriminator-width", type=int, default=256)
    parser.add_argument("--discriminator-depth", type=int, default=4)
    parser.add_argument("--batch-norm", choices=("true", "false"), default="true")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--path", help="folder with the files of the data; default: the cache or a download")
    parser.add_argument("--out", type=Path, default=Path("runs/aae_priors"))
    parser.add_argument("--picture", type=Path, default=Path("runs/aae_priors.png"))
    given = parser.parse_args()
    found = {}
    print("| prior | sample | MMD | code to draw | draw to code |\n|---|---|---|---|---|", flush=True)
    for prior in given.priors.split(","):
        start = time.perf_counter()
        found[prior] = train(prior, given)
        measure(prior, found[prior][0])
        print(f"trained and measured in {time.perf_counter() - start:.0f} s", flush=True)
        picture(found, given.picture)


if __name__ == "__main__":
    main()
