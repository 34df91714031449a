"""aae_cluster: does its objective prefer the classes? Clusters that begin as classes against those that begin free.

    python benchmarks/experiments/aae_optimum.py --told 0,4000 --clusters 16 --steps 12000 \\
        --data "mnist(part='train', size=28)"

For the first `told` steps a cross-entropy of all labels holds every image to the clusters of its class (cluster 12
of 16 is the third class's second); then the labels are taken away, and training goes on as the method has it.
Prints, every so often, the training losses and the share of the images not trained on whose cluster's commonest label
is not theirs. Were the classes where the objective is lowest, runs that begin there would stay, and reconstruct better.
"""

from __future__ import annotations

import argparse
from typing import Any, NamedTuple, final

import torch
from aae_rates import dense
from torch import Tensor

from unweave.contract import Batch, DataInfo, Method, Out, Representation
from unweave.data import Dataset, load_data
from unweave.engine.program import initial_state
from unweave.methods.aae_cluster import AAECluster
from unweave.metrics import cluster_error
from unweave.nn.batch_norm import BatchNormEncoder
from unweave.nn.discriminator import Discriminator
from unweave.nn.heads import batch_heads
from unweave.nn.networks import init_weights
from unweave.studies.makhzani2015 import last_clusters
from unweave.studies.study import held_out_data
from unweave.training.build import build, build_program, find_device, make_engine, optimizer_settings

SHOWN = ("recon", "style_discriminator_accuracy", "class_discriminator_accuracy")


@final
class ToldClusters(Method):
    """The method, and a third phase in which labels say the cluster."""

    class Hyper(NamedTuple):
        dropout: Tensor
        class_weight: Tensor

    paper, equation = AAECluster.paper, AAECluster.equation
    needs = ("x", "labelled", "labels")
    players = {
        **{player: tuple(f"inner.{part}" for part in parts) for player, parts in AAECluster.players.items()},
        "classifier": ("inner.autoencoder.encoder",),
    }
    phases = {**AAECluster.phases, "classification": ("classifier",)}
    optimizer_defaults = {**AAECluster.optimizer_defaults, "classifier": {"lr": 1e-4}}

    def __init__(self, data: DataInfo, *, clusters: int, width: int) -> None:
        super().__init__()
        self.classes = data.labels[0]
        self.inner = AAECluster(data, clusters=clusters, net="makhzani", likelihood="gaussian")
        self.noise, self.latents = self.inner.noise, self.inner.latents
        narrow(self.inner, data.shape, width)

    def forward(self, batch: Batch, noise: Any, hyper: Hyper, step: Tensor, phase: str = "reconstruction") -> Out:
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
    """Two hidden layers of this width in place of every network's."""
    encoder, method.autoencoder.decoder = dense(shape, method.latents + method.clusters, width)
    method.autoencoder.encoder = BatchNormEncoder(encoder, classes=method.clusters)
    init_weights(method.autoencoder)
    method.style_discriminator = Discriminator(method.latents, width=width, depth=2)
    method.class_discriminator = Discriminator(method.clusters, width=width, depth=2)


def wrong(method: ToldClusters, data: Dataset, test: Dataset) -> float:
    """In per cent."""
    named = last_clusters(method, data, data.size // 6)
    return 100.0 * cluster_error(*last_clusters(method, test, test.size), validation=named, by="most")


def train(told: int, seed: int, given: argparse.Namespace) -> None:
    device = find_device(given.device)
    config: dict[str, Any] = {"hyper": {"dropout": 0.2, "class_weight": 1.0}}
    config["arguments"] = {"clusters": given.clusters, "width": given.width}
    config |= {"seed": seed, "device": device, "batch": 100, "precision": "float32", "supervision": "labels()"}
    config["optimizer"] = optimizer_settings(ToldClusters, f"linear({given.lr}, 0, {given.steps})", 0.0)
    config["optimizer"]["classifier"]["lr"] = (given.lr if told else 0.0, 0.0, 1.0, float(told))  # ends there
    data = load_data(given.data).to(device)
    test = held_out_data(data).to(device)
    torch.manual_seed(seed)
    method = build(ToldClusters, config, data)
    assert isinstance(method, ToldClusters)
    runner = make_engine(build_program(config, method, data), initial_state(method), "auto")
    for done in range(given.every, given.steps + 1, given.every):
        logs = runner.run(given.every)
        method.load_state_dict({**runner.state.params, **runner.state.buffers})
        cells = [f"{logs[name]:.2f}" for name in SHOWN] + [f"{wrong(method, data, test):.1f}"]
        print(f"| {told} | {seed} | {done} | " + " | ".join(cells) + " |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--told", default="0,4000", help="steps with labels, one or several")
    parser.add_argument("--seeds", default="0")
    parser.add_argument("--clusters", type=int, default=16)
    parser.add_argument("--steps", type=int, default=12_000)
    parser.add_argument("--every", type=int, default=1000)
    parser.add_argument("--width", type=int, default=400)
    parser.add_argument("--lr", type=float, default=5e-4)
    parser.add_argument("--data", default="mnist(part='train', size=28)")
    parser.add_argument("--device", default="auto")
    given = parser.parse_args()
    print("| told | seed | step | reconstruction, nats | style critic | cluster critic | wrong, % |\n|" + "---|" * 7)
    for told in given.told.split(","):
        for seed in given.seeds.split(","):
            train(int(told), int(seed), given)


if __name__ == "__main__":
    main()
