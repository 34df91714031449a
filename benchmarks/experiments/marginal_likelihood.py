"""Marginal likelihood of MNIST under VAEs with several numbers of latents.

    python benchmarks/experiments/marginal_likelihood.py --latents 10 --latents 40 --steps 20000

Trains the `vae` of study zhao2019 on MNIST with each number of latents and prints -log p(x) as the study estimates it.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import unweave as uw
from unweave.evaluation.likelihood import marginal_nll
from unweave.studies.study import held_out_data
from unweave.studies.work import select_runs
from unweave.studies.zhao2019 import STUDY


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--latents", type=int, action="append", help="number of latents, repeatable; default 10")
    parser.add_argument("--steps", type=int, default=20_000)
    parser.add_argument("--lr", default="1e-4", help="default: the study's")
    parser.add_argument("--rows", type=int, default=1000, help="test images")
    parser.add_argument("--path", help="folder with the files of the data; default: the cache or a download")
    parser.add_argument("--precision", default="float32")
    parser.add_argument("--device", default="auto")
    parser.add_argument("--out", type=Path, default=Path("runs/marginal_likelihood"))
    given = parser.parse_args()
    only = {"method": ["vae"], "data": ["mnist"]}
    (run,) = select_runs(STUDY, "full", only=only, seeds=[0], path=given.path, device=given.device)
    print("| latents | steps | rate | reconstruction | KL | -log p(x), nats |\n|" + "---|" * 6)
    for latents in given.latents or [10]:
        changed = {"latents": latents, "steps": given.steps, "precision": given.precision, "lr": given.lr}
        out = given.out / f"latents{latents}"
        found = uw.load(out) if out.exists() else uw.train(**run | changed, out=out)
        last = found.folder.logs()[-1]
        nll = float(marginal_nll(found, held_out_data(found.data), num_samples=given.rows).mean())
        cells = (latents, given.steps, given.lr, f"{last['recon']:.1f}", f"{last['kl']:.1f}", f"{nll:.2f}")
        print("| " + " | ".join(map(str, cells)) + " |", flush=True)


if __name__ == "__main__":
    main()
