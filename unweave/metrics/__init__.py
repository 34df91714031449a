"""The list of metrics: functions of `codes` [N, D] and `factors` [N, K], never of a model.

Adding one is a function in its family's file, an entry here and a page in docs/reference/metrics. The entry says what
holds of the score; tests/conformance/test_metrics.py tries all of it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import inf
from typing import Any, NamedTuple

from unweave.metrics.agreement import agreement
from unweave.metrics.clusters import cluster_error, cluster_labels
from unweave.metrics.correlation import (
    active_dimensions,
    gaussian_total_correlation,
    gaussian_wasserstein_correlation,
    mcc_score,
)
from unweave.metrics.dci import dci_scores, importance_matrix
from unweave.metrics.downstream import LABELS, downstream_scores
from unweave.metrics.explicitness import explicitness_score
from unweave.metrics.fixed_factor import beta_vae_score, factor_vae_score
from unweave.metrics.histogram_mi import Information
from unweave.metrics.infomec import infomec_scores
from unweave.metrics.information import (
    dcimig_of,
    dcimig_score,
    discretize,
    entropies,
    group_mig_score,
    jemmig_of,
    jemmig_score,
    mig_of,
    mig_per_factor,
    mig_score,
    mig_sup_of,
    mig_sup_score,
    modularity_of,
    modularity_score,
    mutual_information_matrix,
)
from unweave.metrics.irs import irs_score
from unweave.metrics.posterior import kl_decomposition, mig_score_from_posterior, posterior_information_matrix
from unweave.metrics.retrieval import recall_at_1
from unweave.metrics.sap import sap_score

ALL_INVARIANCES = ("permutation", "scale", "sign")


class Metric(NamedTuple):
    """A score, what it means to somebody who has never met it, and what holds of it."""

    function: Callable[..., Any]  # (codes, factors, *, options) -> float, or a dict of floats if it has parts
    title: str
    description: str
    definition: str  # whose definition this is, in a few words
    low: float = 0.0  # the worst value
    high: float = 1.0  # the best value
    parts: Mapping[str, str] = {}  # the numbers of a score that has several, each with its sentence
    better: str = "higher"  # or "lower", or "neither"; then low and high are only the ends of the range
    # What may be done to the codes without changing the score: their order, the sign of some, a positive factor
    # for some (as long as none falls under a threshold for dead codes).
    invariant: tuple[str, ...] = ALL_INVARIANCES
    random: bool = False  # takes a seed
    split: bool = False  # fits a predictor: takes test=(codes, factors), or splits the table by the seed
    rows: int | None = 10_000  # how many rows evaluate hands it, the number its authors use; None is all
    factors: int = 1  # with fewer factors that vary it says nothing
    needs: tuple[str, ...] = ()  # beside codes and factors: "posterior" (mean and logvar) or "groups"
    from_counts: Callable[[Information], float] | None = None  # the same score from counts, for cheap resampling
    bootstrap: bool = False  # cheap enough to be computed again on drawn rows
    quick: bool = False  # part of what evaluate computes unless told otherwise


METRICS: dict[str, Metric] = {
    "mig": Metric(
        mig_score,
        "Mutual information gap (MIG)",
        "How much more one latent knows about each factor than any other latent does; 1 is perfect, 0 is none.",
        definition="disentanglement_lib: 20 bins",
        from_counts=mig_of,
        quick=True,
    ),
    "factor_vae": Metric(
        factor_vae_score,
        "FactorVAE score",
        "How often the latent that stays still while one factor is held fixed tells which factor that was; "
        "1 is always, and guessing gets 1 divided by the number of factors.",
        definition="disentanglement_lib: pruned below 0.05",
        random=True,
        rows=None,
        factors=2,  # with one factor the vote is right by definition
        quick=True,
    ),
    "beta_vae": Metric(
        beta_vae_score,
        "beta-VAE score",
        "How often a linear classifier can tell which factor two groups of observations share; 1 is always.",
        definition="disentanglement_lib: 64 pairs, logistic regression",
        invariant=("permutation", "sign"),
        random=True,
        rows=None,
        factors=2,
    ),
    "dci": Metric(
        dci_scores,
        "DCI",
        "How predictors of the factors use the latents, and how well they predict.",
        definition="disentanglement_lib: boosted trees",
        parts={
            "disentanglement": "Whether each latent is used to predict one factor only.",
            "completeness": "Whether each factor is predicted from one latent only.",
            "informativeness": "How well the factors are predicted from all latents, on other observations.",
        },
        random=True,
        split=True,
    ),
    "sap": Metric(
        sap_score,
        "Separated attribute predictability (SAP)",
        "How far the best latent of each factor is ahead of the second best in predicting it alone.",
        definition="disentanglement_lib: linear SVM, C = 0.01",
        invariant=("permutation", "sign"),  # the penalty of the SVM knows the scale
        random=True,
        split=True,
    ),
    "modularity": Metric(
        modularity_score,
        "Modularity",
        "Whether each latent knows about one factor only; 1 is one each, 0 is all factors alike.",
        definition="disentanglement_lib: 20 bins, dead codes count 0",
        factors=2,
        from_counts=modularity_of,
        quick=True,
    ),
    "explicitness": Metric(
        explicitness_score,
        "Explicitness",
        "How well a linear classifier of all latents ranks the values of each factor; 0.5 is guessing.",
        definition="disentanglement_lib: area under the ROC curve, test rows",
        random=True,
        split=True,
    ),
    "mig_sup": Metric(
        mig_sup_score,
        "MIG from the latents' side (MIG-sup)",
        "How much more each latent knows about one factor than about any other, mean over the latents.",
        definition="Li et al.: I/H(factor), 20 bins",
        from_counts=mig_sup_of,
    ),
    "dcimig": Metric(
        dcimig_score,
        "DCIMIG",
        "How much of all factors together is known by latents that know that factor alone.",
        definition="Sepliarskaia et al., 20 bins",
        from_counts=dcimig_of,
    ),
    "jemmig": Metric(
        jemmig_score,
        "Joint entropy minus MIG (JEMMIG)",
        "MIG that also asks the best latent of each factor to know nothing else.",
        definition="Do & Tran, normalised, 20 bins",
        from_counts=jemmig_of,
    ),
    "irs": Metric(
        irs_score,
        "Interventional robustness (IRS)",
        "How firmly each latent stays in place while its factor is held and all others change.",
        definition="disentanglement_lib: quantile 0.99",
        invariant=("permutation", "sign"),  # codes weigh by how far they stray
        bootstrap=True,
        quick=True,
    ),
    "mcc": Metric(
        mcc_score,
        "Mean correlation coefficient (MCC)",
        "How well each factor is a straight line in a latent of its own, the best pairing taken.",
        definition="absolute Pearson, optimal matching",
        bootstrap=True,
        quick=True,
    ),
    "infomec": Metric(
        infomec_scores,
        "InfoMEC",
        "Modularity, compactness and explicitness, all three in information.",
        definition="Hsu et al.: 10 neighbours, pruned at 1/20 of the largest range",
        parts={
            "modularity": "InfoM: whether each latent knows about one factor only.",
            "compactness": "InfoC: whether each factor is known by one latent only.",
            "explicitness": "InfoE: how much of each factor a linear model of all latents predicts.",
        },
        invariant=("permutation", "sign"),  # codes are pruned by their range against the largest
        random=True,
    ),
    "downstream": Metric(
        downstream_scores,
        "Downstream prediction",
        "How well the factors are predicted from the latents when few labels are there to learn from.",
        definition="disentanglement_lib: logistic regression, cross-validated",
        parts={
            f"labels_{number}": f"The share predicted right after {number:,} labels, or all there are if fewer."
            for number in LABELS
        },
        random=True,
        split=True,
    ),
    "group_mig": Metric(
        group_mig_score,
        "MIG between groups (group-MIG)",
        "How much more the right group of latents knows about each factor than the others; below 0, less.",
        definition="20 bins",
        low=-1.0,
        high=1.0,
        quick=True,
        needs=("groups",),
    ),
    "mig_posterior": Metric(
        mig_score_from_posterior,
        "MIG from the posterior",
        "MIG with its authors' estimator: samples of the posterior and exact mixture densities, no bins.",
        definition="Chen et al.: 10,000 samples",
        random=True,
        needs=("posterior",),
    ),
    "kl_decomposition": Metric(
        kl_decomposition,
        "Parts of the KL",
        "What the KL to the prior is spent on, in nats.",
        definition="Chen et al.: 10,000 samples",
        low=-inf,
        high=inf,
        parts={
            "index_code_mi": "Nats a code tells about which observation it belongs to.",
            "total_correlation": "Nats by which the latents are not independent of each other; 0 is independent.",
            "dimension_wise_kl": "Nats by which single latents differ from their prior.",
            "kl": "The whole KL to the prior, the sum of the three.",
        },
        factors=0,
        better="neither",
        invariant=("permutation", "sign"),
        random=True,
        needs=("posterior",),
    ),
    "gaussian_total_correlation": Metric(
        gaussian_total_correlation,
        "Gaussian total correlation",
        "Nats by which the latents are correlated with each other; 0 is not at all. Needs no factors.",
        definition="disentanglement_lib",
        low=inf,
        high=0.0,
        factors=0,
        better="lower",
        bootstrap=True,
    ),
    "active_dimensions": Metric(
        active_dimensions,
        "Active latents",
        "How many latents differ between observations at all: variance above 0.01. Needs no factors.",
        definition="Burda et al.: variance above 0.01",
        low=0.0,
        high=inf,
        factors=0,
        better="neither",
        invariant=("permutation", "sign"),
        bootstrap=True,
    ),
}


def describe(score: str) -> Metric:
    """The entry behind a score as `evaluate` names it: "mig", or "infomec.modularity" with that part's own words."""
    name, _, part = score.partition(".")
    metric = METRICS[name]
    return (
        metric._replace(title=f"{metric.title}: {part.replace('_', ' ')}", description=metric.parts[part])
        if part
        else metric
    )


__all__ = [
    "METRICS",
    "Metric",
    "active_dimensions",
    "agreement",
    "beta_vae_score",
    "cluster_error",
    "cluster_labels",
    "dci_scores",
    "dcimig_score",
    "describe",
    "discretize",
    "downstream_scores",
    "entropies",
    "explicitness_score",
    "factor_vae_score",
    "gaussian_total_correlation",
    "gaussian_wasserstein_correlation",
    "group_mig_score",
    "importance_matrix",
    "infomec_scores",
    "irs_score",
    "jemmig_score",
    "kl_decomposition",
    "mcc_score",
    "mig_per_factor",
    "mig_score",
    "mig_score_from_posterior",
    "mig_sup_score",
    "modularity_score",
    "mutual_information_matrix",
    "posterior_information_matrix",
    "recall_at_1",
    "sap_score",
]
