"""aae_cluster: variants of the method and its initialisation, one fleet of seeds per call.

    python benchmarks/experiments/cluster_starts.py --set style_batch_norm=true \\
        --set "sharpness=linear(0.1, 1, 5000)" --steps 10000

Prints, for each seed, the last training losses and the percentage of test images in the wrong cluster, by the paper's
rule and by the most frequent label of the cluster. `sharpness` multiplies the cluster logits (below 1 an image
may belong to several clusters); `style_batch_norm` normalises the style over the batch; `joint` uses one discriminator
of style and cluster together instead of two; `width` is the width of all hidden layers.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Annotated, Any, NamedTuple, final

import pandas as pd
import torch
from aae_rates import dense
from torch import Tensor, nn

import unweave as uw
from unweave.cli.progress import sweep_progress_observer
from unweave.cli.sweep import read_seeds
from unweave.contract import Batch, DataInfo, HyperParam, Method, Out, Representation, uniform
from unweave.methods.aae_cluster import AAECluster
from unweave.model import TrainedModel
from unweave.nn.autoencoder import AutoEncoder
from unweave.nn.batch_norm import BatchNormEncoder
from unweave.nn.discriminator import Discriminator, adversarial_losses
from unweave.nn.heads import HEAD_NOISE, batch_heads, heads, heads_adversarial_losses
from unweave.nn.networks import init_weights
from unweave.ops.priors import one_hot_sample
from unweave.studies.makhzani2015 import error


@final
class Clusters(Method):
    """aae_cluster with additional settings."""

    class Hyper(NamedTuple):
        dropout: Annotated[Tensor, HyperParam(0.2, "share of the encoder's input pixels set to 0")]
        class_weight: Annotated[Tensor, HyperParam(1.0, "weight of the class discriminator's loss for the encoder")]
        sharpness: Annotated[Tensor, HyperParam(1.0, "factor of the cluster logits")]
        recon_weight: Annotated[Tensor, HyperParam(1.0, "weight of the reconstruction")]

    paper, equation = AAECluster.paper, AAECluster.equation
    players, phases, optimizer_defaults = AAECluster.players, AAECluster.phases, AAECluster.optimizer_defaults

    def __init__(
        self,
        data: DataInfo,
        *,
        latents: int = 5,
        clusters: int = 16,
        width: int = 1000,
        style_batch_norm: bool = True,
        joint: bool = False,
    ) -> None:
        super().__init__()
        self.latents, self.clusters, self.joint = latents, clusters, joint
        self.noise = {**HEAD_NOISE, "input": uniform("B", *data.shape)}
        self.autoencoder = AutoEncoder(data.shape, latents + clusters, "makhzani", "gaussian")
        encoder, self.autoencoder.decoder = dense(data.shape, latents + clusters, width)
        self.autoencoder.encoder = BatchNormEncoder(encoder, classes=clusters, style=style_batch_norm)
        init_weights(self.autoencoder)
        self.style_discriminator = Discriminator(latents + (clusters if joint else 0), width=width, depth=2)
        self.class_discriminator = Discriminator(clusters, width=width, depth=2) if not joint else nn.Identity()

    def forward(self, batch: Batch, noise: Any, hyper: Hyper, step: Tensor, phase: str = "reconstruction") -> Out:
        assert batch.x is not None
        keep = (noise["input"] >= hyper.dropout) / (1.0 - hyper.dropout)
        found, state = batch_heads(self.autoencoder, batch.x * keep, self.clusters)
        found = found._replace(logits_BY=found.logits_BY * hyper.sharpness)
        if phase == "reconstruction":
            recon = self.autoencoder.nll(batch.x, found.code).mean()
            return Out({"model": hyper.recon_weight * recon}, {"recon": recon}, state)
        if self.joint:
            one_hot_BY = one_hot_sample(noise["place"][:, 0], self.clusters)
            both = adversarial_losses(self.style_discriminator, found.code, torch.cat([noise["prior"], one_hot_BY], 1))
            logs = {"style_discriminator_accuracy": both.accuracy, "class_discriminator_accuracy": both.accuracy}
            return Out({"discriminators": both.discriminator, "encoder": hyper.class_weight * both.generator}, logs)
        discriminators = self.style_discriminator, self.class_discriminator
        return heads_adversarial_losses(discriminators, found, noise, hyper.class_weight)

    def representation(self) -> Representation:
        return Representation(
            lambda x: heads(self.autoencoder, x, self.clusters).code,
            self.latents + self.clusters,
            self.autoencoder.decode,
            cluster=lambda x: heads(self.autoencoder, x, self.clusters).class_BY,
        )


def arguments_given() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--set", action="append", default=[], help="setting of the variant, name=value")
    parser.add_argument("--seeds", default="0-2")
    parser.add_argument("--steps", type=int, default=10_000)
    parser.add_argument("--batch", type=int, default=100)
    parser.add_argument("--lr", default="", help="default: from 5e-4 to 0")
    parser.add_argument("--optimizer", default="adam")
    parser.add_argument("--init", default="glorot")
    parser.add_argument("--clip", type=float, default=0.0)
    parser.add_argument("--data", default="mnist(part='train', size=28)")
    parser.add_argument("--device", default="auto")
    parser.add_argument("--precision", default="float32")
    parser.add_argument("--out", type=Path, default=Path("runs/cluster_starts"))
    return parser.parse_args()


def _value(text: str) -> Any:
    if text in ("true", "false"):
        return text == "true"
    return int(text) if text.isdecimal() else text


def main() -> None:
    given = arguments_given()
    names = ("steps", "batch", "device", "precision", "optimizer", "init", "clip")
    same = {name: getattr(given, name) for name in names} | {"method": Clusters, "data": given.data}
    same |= {"lr": given.lr or f"linear(5e-4, 0, {given.steps})"}
    same |= {name: _value(value) for name, _, value in (pair.partition("=") for pair in given.set)}
    runs = [{**same, "seed": seed, "out": given.out / f"seed{seed}"} for seed in read_seeds(given.seeds)]
    with sweep_progress_observer() as observe:
        done = uw.fit(runs, out=given.out, observe=observe)
    rows = []
    for run, found in zip(runs, done, strict=True):
        row = {"changed": " ".join(given.set), "steps": given.steps, "seed": run["seed"]}
        rows.append(row | (_found(found) if isinstance(found, TrainedModel) else {"error": "diverged"}))
    frame = pd.DataFrame(rows)
    frame.to_csv(given.out / "scores.csv", index=False)
    print(frame.to_string(index=False))


def _found(run: TrainedModel) -> dict[str, float]:
    last = run.folder.logs()[-1]
    logs = {name: last[name] for name in ("recon", "style_discriminator_accuracy", "class_discriminator_accuracy")}
    return {**logs, **error(run)}


if __name__ == "__main__":
    main()
