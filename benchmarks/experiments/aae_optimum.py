"""aae_cluster: is its objective lowest if the clusters are the classes? Supervised and random initial clusters.

    python benchmarks/experiments/aae_optimum.py --labelled-steps 0,4000 --clusters 16 --steps 12000 \\
        --data "mnist(part='train', size=28)"

During the first `--labelled-steps` steps a cross-entropy on all labels assigns every image to the clusters of its class
(of 16 clusters, 2 and 12 belong to class 2). Then the labels are removed and the method trains as usual. Prints, every
`--every` steps, the training losses and the percentage of test images whose label is not the most frequent one of their
cluster. If the classes minimised the objective, runs that start there would stay there and reconstruct better.
"""

from __future__ import annotations

import argparse
from typing import Any, final

import torch
from aae_rates import dense
from torch import Tensor

from unweave.contract import Batch, DataInfo, Method, Out, Representation
from unweave.data import Dataset, load_data
from unweave.engine.program import initial_state
from unweave.engine.replicas import make_engine
from unweave.methods.aae_cluster import AAECluster
from unweave.metrics import cluster_error
from unweave.nn.batch_norm import BatchNormEncoder
from unweave.nn.discriminator import Discriminator
from unweave.nn.heads import batch_heads
from unweave.nn.networks import init_weights
from unweave.studies.makhzani2015 import last_clusters
from unweave.studies.study import held_out_data
from unweave.training.build import build, build_program
from unweave.training.prepare import prepare

SHOWN = ("recon", "style_discriminator_accuracy", "class_discriminator_accuracy")


@final
class LabelledClusters(Method):
    """aae_cluster with a third phase, in which labels determine the cluster."""

    Hyper = AAECluster.Hyper
    paper, equation = AAECluster.paper, AAECluster.equation
    needs = ("x", "labelled", "labels")
    players = {
        **{player: tuple(f"inner.{part}" for part in parts) for player, parts in AAECluster.players.items()},
        "classifier": ("inner.autoencoder.encoder",),
    }
    phases = {**AAECluster.phases, "classification": ("classifier",)}
    optimizer_defaults = {**AAECluster.optimizer_defaults, "classifier": {"lr": 1e-4}}

    def __init__(self, data: DataInfo, *, clusters: int = 16, width: int = 400) -> None:
        super().__init__()
        self.classes = data.labels[0]
        self.inner = AAECluster(data, clusters=clusters, net="makhzani", likelihood="gaussian")
        self.noise, self.latents = self.inner.noise, self.inner.latents
        narrow(self.inner, data.shape, width)

    def forward(self, batch: Batch, noise: Any, hyper: Any, step: Tensor, phase: str = "reconstruction") -> Out:
        if phase != "classification":
            out = self.inner(batch, noise, hyper, step, phase)
            return out._replace(state={f"inner.{name}": value for name, value in out.state.items()})
        found, _ = batch_heads(self.inner.autoencoder, batch.labelled, self.inner.clusters)  # type: ignore[arg-type]
        owner_Y = torch.arange(self.inner.clusters, device=found.logits_BY.device) % self.classes
        mine_BY = owner_Y == batch.labels[:, :1]  # type: ignore[index]
        loss = -found.logits_BY.log_softmax(1).where(mine_BY, -torch.inf).logsumexp(1).mean()
        return Out({"classifier": loss}, {"cross_entropy": loss})

    def representation(self) -> Representation:
        return self.inner.representation()


def narrow(method: AAECluster, shape: tuple[int, ...], width: int) -> None:
    """Replace every network by one with two hidden layers of this width."""
    encoder, method.autoencoder.decoder = dense(shape, method.latents + method.clusters, width)
    method.autoencoder.encoder = BatchNormEncoder(encoder, classes=method.clusters)
    init_weights(method.autoencoder)
    method.style_discriminator = Discriminator(method.latents, width=width, depth=2)
    method.class_discriminator = Discriminator(method.clusters, width=width, depth=2)


def error_percent(method: LabelledClusters, data: Dataset, test: Dataset) -> float:
    validation = last_clusters(method, data, data.size // 6)
    return 100.0 * cluster_error(*last_clusters(method, test, test.size), validation=validation, by="most")


def train(labelled_steps: int, seed: int, given: argparse.Namespace) -> None:
    options = {"clusters": given.clusters, "width": given.width, "supervision": "labels()", "batch": 100}
    lr = f"linear({given.lr}, 0, {given.steps})"
    config = prepare(LabelledClusters, given.data, **options, lr=lr, seed=seed, device=given.device).config
    rate = given.lr if labelled_steps else 0.0
    config.optimizers["classifier"]["lr"] = (rate, 0.0, 1.0, float(labelled_steps))  # 0 from that step on
    data = load_data(given.data).to(config.device)
    test = held_out_data(data).to(config.device)
    method = build(LabelledClusters, config, data)
    assert isinstance(method, LabelledClusters)
    runner = make_engine(build_program(config, method, data), initial_state(method), "auto")
    for done in range(given.every, given.steps + 1, given.every):
        logs = runner.run(given.every)
        method.load_state_dict({**runner.state.params, **runner.state.buffers})
        cells = [f"{logs[name]:.2f}" for name in SHOWN] + [f"{error_percent(method, data, test):.1f}"]
        print(f"| {labelled_steps} | {seed} | {done} | " + " | ".join(cells) + " |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--labelled-steps", default="0,4000", help="one or more numbers of steps")
    parser.add_argument("--seeds", default="0")
    parser.add_argument("--clusters", type=int, default=16)
    parser.add_argument("--steps", type=int, default=12_000)
    parser.add_argument("--every", type=int, default=1000)
    parser.add_argument("--width", type=int, default=400)
    parser.add_argument("--lr", type=float, default=5e-4)
    parser.add_argument("--data", default="mnist(part='train', size=28)")
    parser.add_argument("--device", default="auto")
    given = parser.parse_args()
    print("| labelled steps | seed | step | " + " | ".join((*SHOWN, "error, %")) + " |\n|" + "---|" * 7)
    for labelled_steps in given.labelled_steps.split(","):
        for seed in given.seeds.split(","):
            train(int(labelled_steps), int(seed), given)


if __name__ == "__main__":
    main()
