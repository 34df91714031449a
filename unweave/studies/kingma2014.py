"""Kingma et al. 2014: how few labels suffice, when a generative model learns from all images."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from unweave.evaluation.classification import class_error
from unweave.model import TrainedModel
from unweave.studies.study import (
    COMPARED,
    SMALL_TESTED,
    TESTED,
    Published,
    Row,
    RunSpec,
    Study,
    base_name,
    held_out_data,
)

MODELS: tuple[RunSpec, ...] = (
    {"method": "m1", "classifier": "regression"},
    {"method": "m1", "classifier": "tsvm"},
    {"method": "m2"},
    {"method": "m1_m2"},
)
LONGER: dict[str, RunSpec] = {  # docs/reference/methods: what each gains by
    "m2": {"steps": 200_000, "lr": 1e-3},
    "m1_m2": {"steps": 200_000, "lr": "linear(1e-3, 0, 100000, 100000)", "batch": 250},
}
FULL: RunSpec = {"steps": 60_000, "batch": 100, "log_every": 1000}
QUICK: RunSpec = {
    "steps": 1000,
    "batch": 64,
    "lr": 1e-3,
}


def runs(scale: str) -> list[RunSpec]:
    quick = scale == "quick"
    sets, counts, seeds = ((SMALL_TESTED,), (100,), 2) if quick else (TESTED, (100, 1000, 3000), 5)
    same = {**(QUICK if quick else FULL), "binarize": True}
    longer = {} if quick else LONGER
    return [
        {
            **model,
            "data": data,
            **same,
            **longer.get(model["method"], {}),
            "supervision": f"labels(n={count}, balanced=True)",
            "seed": seed,
        }
        for data in sets
        for model in MODELS
        for count in counts
        for seed in range(seeds)
    ]


def row(run: Mapping[str, Any]) -> Row:
    words = [run["method"], *([run["classifier"]] if "classifier" in run else []), "on", base_name(run["data"])]
    return Row(" ".join(words), run["supervision"].partition("n=")[2].partition(",")[0] + " labels")


def error(run: TrainedModel) -> dict[str, float]:
    """Of the images that were not trained on the share whose likeliest class is wrong, in per cent."""
    (share,) = class_error(run, held_out_data(run.data)).values()
    return {"error": 100.0 * share}


TABLE_1 = "Table 1, from a picture of it in a repository of re-runs"
ERRORS = {  # with 100, 1000 and 3000 labels: mean and the ± that is printed with it
    "m1 tsvm on mnist": ((11.82, "0.25"), (4.24, "0.07"), (3.49, "0.04")),
    "m2 on mnist": ((11.97, "1.71"), (3.60, "0.56"), (3.92, "0.63")),
    "m1_m2 on mnist": ((3.33, "0.14"), (2.40, "0.02"), (2.18, "0.04")),
}

STUDY = Study(
    name="kingma2014",
    paper="Kingma et al., Semi-supervised Learning with Deep Generative Models, NIPS 2014",
    question="How many test images are classified wrongly, in per cent, when few have labels and the model learns from "
    "all?",
    runs=runs,
    row=row,
    scores=("error",),
    published=tuple(
        Published(f"{family}, {count} labels", "error", value, "mean", "read", f"{TABLE_1}, ±{spread} as printed")
        for family, found in ERRORS.items()
        for count, (value, spread) in zip((100, 1000, 3000), found, strict=True)
    ),
    extra=error,
    notes=(
        "error: in per cent, 0 at best, of the 10,000 test images; training sees the 60,000 others; the labelled "
        "ones are drawn by the run's seed, equally many of every class",
        "full: 60,000 steps of 100 images in each stage; 200,000 at a rate of 0.001 for m2; 200,000 of 250 images for "
        "m1_m2 at 0.001, which falls to 0 over the second half (the authors' program makes 300,000 of 500 at 0.0003); "
        "its 600 labels are left out; regression after m1 is named in its "
        "text, without a number; alpha is 300 for m2, 1 for m1_m2, the paper's 0.1; it has nothing on Fashion-MNIST, "
        "where all is as on MNIST",
        COMPARED,
        "quick: another data set, 1,797 small digits in 16 x 16, a quarter of which are the test images, and too few "
        "steps to compare anything with the paper",
    ),
)
