"""Makhzani et al. 2015: classification with few labels and without, with adversarial autoencoders."""

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from unweave.contract import Method
from unweave.data import Dataset
from unweave.evaluation.classification import class_error
from unweave.metrics import cluster_error
from unweave.model import TrainedModel
from unweave.studies.study import DIGITS, MNIST_SETS, NOTES, Published, Row, RunSpec, Study, base_name, held_out_data

HUNDRED, THOUSAND = "labels(n=100, balanced=True)", "labels(n=1000, balanced=True)"
LABELS = {HUNDRED: "100 labels", THOUSAND: "1000 labels", "labels()": "all labels"}
SEMI: RunSpec = {"method": "aae_semi", "latents": 10}
CLUSTER: RunSpec = {"method": "aae_cluster", "latents": 5}
REDUCE: RunSpec = {"method": "aae_reduce", "latents": 2}
MODELS: tuple[RunSpec, ...] = (
    *({**SEMI, "supervision": labels} for labels in LABELS),
    *({**CLUSTER, "clusters": clusters} for clusters in (16, 30)),
    *({**REDUCE, "supervision": labels} for labels in (HUNDRED, THOUSAND)),
    {**REDUCE, "clusters": 20},
)
SMALL: tuple[RunSpec, ...] = ({**SEMI, "supervision": HUNDRED}, {**CLUSTER, "clusters": 16})

NET: RunSpec = {"net": "makhzani", "likelihood": "gaussian"}
FULL: RunSpec = {"steps": 150_000, "batch": 100, "lr": "linear(5e-4, 0, 150000)", "log_every": 1000}
SHORTER: RunSpec = {"steps": 60_000, "lr": "linear(5e-4, 0, 60000)"}  # for rows without a published mean
SGD: RunSpec = {  # the optimizer of the paper, better than Adam with few labels
    "steps": 450_000,
    "optimizer": "sgd",
    "lr": "x linear(1, 0, 150000, 300000)",
    "clip": 20.0,  # without clipping four of ten runs diverge in the first hundreds of steps
    "init": "normal(0.01)",
}
QUICK: RunSpec = {"steps": 400, "batch": 64, "lr": 5e-4}


def runs(scale: str) -> list[RunSpec]:
    quick = scale == "quick"
    sets, models, seeds = ((DIGITS,), SMALL, 2) if quick else (MNIST_SETS, MODELS, 5)
    found = [{**model, "data": data, **NET} for data in sets for model in models]
    return [{**run, **(QUICK if quick else _training(run)), "seed": seed} for run in found for seed in range(seeds)]


def _training(run: RunSpec) -> RunSpec:
    mnist = {"aae_semi": SGD, "aae_reduce": SHORTER}.get(run["method"], {})
    return {**FULL, **(mnist if base_name(run["data"]) == "mnist" else SHORTER)}


def row(run: Mapping[str, Any]) -> Row:
    setting = LABELS[run["supervision"]] if "supervision" in run else f"{run['clusters']} clusters"
    return Row(f"{run['method']} on {base_name(run['data'])}", setting)


def error(run: TrainedModel) -> dict[str, float]:
    """Return the test error in per cent.

    Without labels, a cluster gets the label of its most probable image among the last sixth of the train images (10,000
    of MNIST); for `error_most` it is the most frequent label of those in the cluster. `smallest` is the percentage of
    test images in the smallest cluster.
    """
    test, train = held_out_data(run.data), run.data
    if run.representation.classify is not None:
        (share,) = class_error(run, test).values()
        return {"error": 100.0 * share}
    found = last_clusters(run.method, test, test.size)
    others = last_clusters(run.method, train, train.size // 6)
    one, most = (100.0 * cluster_error(*found, validation=others, by=by) for by in ("one", "most"))
    shares_Y = found[0].argmax(1).bincount(minlength=found[0].shape[1]) / test.size
    return {"error": one, "error_most": most, "smallest": 100.0 * float(shares_Y.min())}


def last_clusters(method: Method, data: Dataset, rows: int) -> tuple[Tensor, Tensor]:
    """Return the cluster probabilities [N, Y] and true classes [N] of the last `rows` images of the data."""
    device, cluster = next(method.parameters()).device, method.representation().cluster
    assert cluster is not None
    data, index_N = data.to(device), torch.arange(data.size - rows, data.size, device=device)
    with torch.no_grad():
        found = [cluster(data.images(part)) for part in index_N.split(2000)]
    return torch.cat(found), data.factors(index_N)[:, 0]


QUOTED = "a list of results (wizwand.com)"
CLUSTERED = "the table of the GMVAE paper (as accuracy)"
ERRORS = {  # mean, provenance, source
    "aae_semi on mnist, 100 labels": (1.90, "second-hand", f"{QUOTED}; ±0.10 is recalled"),
    "aae_semi on mnist, 1000 labels": (1.60, "recalled", "its table of errors, ±0.08 recalled too"),
    "aae_semi on mnist, all labels": (0.85, "second-hand", f"{QUOTED}; ±0.02 is recalled"),
    "aae_cluster on mnist, 16 clusters": (9.55, "second-hand", f"{CLUSTERED}, ±2.05 as printed there"),
    "aae_cluster on mnist, 30 clusters": (4.10, "second-hand", f"{CLUSTERED}, ±1.13 as printed there"),
}
# Of aae_reduce: the single model in a figure.
FROM_FIGURE = {"100 labels": 6.08, "1000 labels": 4.20, "20 clusters": 13.95}

STUDY = Study(
    name="makhzani2015",
    paper="Makhzani et al., Adversarial Autoencoders, 2015",
    question="What is the test error, in per cent, with few labels, with all labels, and without labels?",
    runs=runs,
    row=row,
    scores=("error",),
    published=(
        *(Published(name, "error", mean, "mean", known, source) for name, (mean, known, source) in ERRORS.items()),
        *(
            Published(f"aae_reduce on mnist, {setting}", "error", value, "one model", "recalled", "a figure's caption")
            for setting, value in FROM_FIGURE.items()
        ),
    ),
    extra=error,
    notes=(
        "error: test error in per cent on 10,000 images; the other 60,000 are train images. A cluster has the label "
        "of its most probable image among the last 10,000 train images",
        "full, aae_semi on MNIST: gradient descent at the paper's learning rates, 450,000 steps of 100 images (750 "
        "epochs), with rates decreasing to 0 over the last third and gradient norms clipped to 20; the paper has "
        "5,000 epochs and decreases the rates in two steps (recalled)",
        "full, all others: Adam at a learning rate decreasing from 0.0005 to 0; 150,000 steps of 100 images for "
        "aae_cluster on MNIST (250 epochs; the paper has 1,500, recalled), 60,000 for aae_reduce and on "
        "Fashion-MNIST, for which there are no published numbers. Gradient descent is not better for aae_cluster",
        *NOTES,
    ),
)
