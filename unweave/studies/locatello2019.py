"""Locatello et al. 2019: six unsupervised objectives with equal settings; seeds matter as much as methods."""

from collections.abc import Mapping, Sequence
from typing import Any

from unweave.studies.study import Published, Row, RunSpec, Study, base_name, settings_text
from unweave.training.sweep import expand

# Three of the six regularisation strengths of the paper: both ends and one between.
STRENGTHS: dict[str, tuple[str, tuple[float, float, float]]] = {
    "beta_vae": ("beta", (1, 4, 16)),
    "annealed_vae": ("c_max", (5, 25, 100)),
    "factor_vae": ("gamma", (10, 40, 100)),
    "beta_tcvae": ("beta", (1, 4, 10)),
    "dip_vae_i": ("lambda_od", (1, 10, 50)),
    "dip_vae_ii": ("lambda_od", (1, 10, 50)),
}
DIAGONAL = {"dip_vae_i": 10, "dip_vae_ii": 1}  # lambda_d as a multiple of lambda_od

# The code of the paper permutes the codes of the same batch; the default of the method is a second batch.
ALWAYS: dict[str, RunSpec] = {"factor_vae": {"one_batch": True}}
FULL = {"data": "sprites", "steps": 300_000, "batch": 64, "log_every": 1000}
QUICK = {"data": "sprites(size=16)", "steps": 3000, "batch": 32, "net": "small", "lr": 1e-3}
SMALLER: dict[str, RunSpec] = {
    "annealed_vae": {"anneal_steps": 1000},  # the capacity must be reached before the end
    "factor_vae": {"discriminator_width": 100},  # 1000 takes ten times as long as the rest of a small model
}


def runs(scale: str) -> list[RunSpec]:
    if scale == "quick":
        chosen = {method: (name, values[1:2]) for method, (name, values) in STRENGTHS.items()}
        return [{**run, **QUICK, **SMALLER.get(run["method"], {})} for run in _grid(chosen, range(2))]
    return [{**run, **FULL} for run in _grid(STRENGTHS, range(5))]


def _grid(strengths: Mapping[str, tuple[str, Sequence[float]]], seeds: range) -> list[RunSpec]:
    found = []
    for method, (name, values) in strengths.items():
        for run in expand({name: values}, seeds):
            diagonal = {"lambda_d": DIAGONAL[method] * run[name]} if method in DIAGONAL else {}
            found.append({"method": method, **run, **diagonal, **ALWAYS.get(method, {})})
    return found


def row(run: Mapping[str, Any]) -> Row:
    method = str(run["method"])
    return Row(f"{method} on {base_name(run['data'])}", settings_text(run, STRENGTHS[method][0]))


VIOLINS = (
    "read to 0.01 from violin plots of chainer-disentanglement-lib (dsprites_full.png); its train.py has only this "
    "strength"
)
RANGES = {  # min and max over seeds: FactorVAE score, DCI, MIG, SAP, IRS
    "beta_vae on sprites, beta=16": ((0.40, 0.73), (0.06, 0.54), (0.05, 0.39), (0.004, 0.080), (0.44, 0.79)),
    "factor_vae on sprites, gamma=100": ((0.58, 0.94), (0.09, 0.58), (0.03, 0.47), (0.013, 0.088), (0.51, 0.81)),
    "dip_vae_i on sprites, lambda_od=50": ((0.43, 0.66), (0.02, 0.09), (0.01, 0.07), (0.002, 0.025), (0.10, 0.18)),
    "dip_vae_ii on sprites, lambda_od=50": ((0.42, 0.76), (0.04, 0.28), (0.01, 0.23), (0.002, 0.080), (0.30, 0.57)),
}
TABLE_1 = "Lin et al. 2020 (InfoGAN-CR), Table 1"
FACTOR_SCORES = {  # mean and printed deviation
    "factor_vae on sprites, gamma=10": (0.83, "0.01", "read", f"{TABLE_1}, their own runs"),
    "factor_vae on sprites, gamma=40": (0.82, "0.01", "read", f"{TABLE_1}, their own runs"),
    "beta_vae on sprites, beta=1": (0.63, "0.06", "second-hand", f"{TABLE_1}, row VAE, best reported"),
    "beta_vae on sprites": (0.63, "0.10", "second-hand", f"{TABLE_1}, best reported"),
    "beta_tcvae on sprites": (0.62, "0.07", "second-hand", f"{TABLE_1}, best reported"),
}


STUDY = Study(
    name="locatello2019",
    paper="Locatello et al., Challenging Common Assumptions in the Unsupervised Learning of Disentangled "
    "Representations, ICML 2019",
    question="Which unsupervised objective disentangles best, and how much of the difference is the seed?",
    runs=runs,
    row=row,
    scores=("beta_vae", "factor_vae", "mig", "dci.disentanglement", "sap", "modularity", "irs"),
    published=(
        *(
            Published(name, score, ends, "range", "read", VIOLINS)
            for name, found in RANGES.items()
            for score, ends in zip(("factor_vae", "dci.disentanglement", "mig", "sap", "irs"), found, strict=True)
        ),
        *(
            Published(name, "factor_vae", value, "mean", provenance, f"{source}, ±{spread} as printed")
            for name, (value, spread, provenance, source) in FACTOR_SCORES.items()
        ),
    ),
    notes=(
        "full: the paper's network, optimizer, 300,000 steps and batch of 64 on one of its seven data sets, with "
        "three of its six strengths and 5 of its 50 seeds; sprites equals dSprites pixel for pixel",
        "factor_vae permutes the codes of the same batch (one_batch), as in the code of the paper; the FactorVAE "
        "paper uses a second batch",
        "the paper prints violin plots without numbers: the ranges are those of another implementation, scored with "
        "the code of the paper",
    ),
)
