"""The list of metrics: functions of `codes` [N, D] and `factors` [N, K], never of a model.

A new metric is a function in its own file or its family's, an entry here, and the page
`docs/reference/metrics/<name>.md`. The entry declares what the commands, the reports and
tests/conformance/test_metrics.py need to know about it.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from math import inf
from typing import Any, NamedTuple

from unweave.metrics.correlation import active_dimensions, gaussian_total_correlation, mcc_score
from unweave.metrics.dci import dci_scores, dci_with_importance
from unweave.metrics.downstream import LABELS, downstream_scores
from unweave.metrics.explicitness import explicitness_score
from unweave.metrics.fixed_factor import beta_vae_score, factor_vae_score
from unweave.metrics.histogram_mi import Information
from unweave.metrics.infomec import infomec_scores
from unweave.metrics.information import (
    dcimig_from_information,
    dcimig_score,
    group_mig_score,
    jemmig_from_information,
    jemmig_score,
    mig_from_information,
    mig_score,
    mig_sup_from_information,
    mig_sup_score,
    modularity_from_information,
    modularity_score,
)
from unweave.metrics.irs import irs_score
from unweave.metrics.posterior import kl_decomposition, mig_score_from_posterior
from unweave.metrics.sap import sap_score

ALL_INVARIANCES = ("permutation", "scale", "sign")


class Metric(NamedTuple):
    """A metric: its function, a description for readers who do not know it, and its properties."""

    function: Callable[..., Any]  # (codes, factors, *, options) -> a float, or a dict of floats if it has parts
    title: str
    description: str  # one sentence
    definition: str  # whose definition this is, in a few words
    worst: float = 0.0  # the range of the score; its two ends in any order if `better` is "neither"
    best: float = 1.0
    better: str = "higher"  # or "lower", or "neither"
    parts: Mapping[str, str] = {}  # the names of several scores, each with its description
    # Transformations of the codes that leave the score unchanged: reordering, changing signs, and multiplying by
    # positive factors (as long as no code falls below a threshold for inactive codes).
    invariant: tuple[str, ...] = ALL_INVARIANCES
    rows: int | None = 10_000  # number of rows that `evaluate` passes, as the authors of the metric use; None is all
    factors: int = 1  # the number of varying factors it needs to be meaningful
    needs: tuple[str, ...] = ()  # inputs besides codes and factors: "posterior" (mean and logvar) or "groups"
    from_information: Callable[[Information], float] | None = None  # the same score from counts, for the bootstrap
    with_importance: Callable[..., Any] | None = None  # the same scores together with an importance matrix [D, K]
    bootstrap: bool = False  # cheap enough to be computed on every bootstrap sample
    quick: bool = False  # whether `evaluate` computes it by default
    test_options: Mapping[str, Any] = {}  # options that make the function faster in tests of its properties

    @property
    def random(self) -> bool:
        """Whether the metric draws random numbers: its function takes a seed."""
        return "seed" in inspect.signature(self.function).parameters

    @property
    def split(self) -> bool:
        """Whether the metric fits a predictor: its function takes test=(codes, factors) or splits by the seed."""
        return "test" in inspect.signature(self.function).parameters


METRICS: dict[str, Metric] = {
    "mig": Metric(
        mig_score,
        "Mutual information gap (MIG)",
        "How much more information one latent has about each factor than any other latent; 1 is perfect, 0 is none.",
        definition="disentanglement_lib: 20 bins",
        from_information=mig_from_information,
        quick=True,
    ),
    "factor_vae": Metric(
        factor_vae_score,
        "FactorVAE score",
        "How often the latent with the smallest variance identifies the factor that was held constant; 1 is always, "
        "and guessing gets 1 divided by the number of factors.",
        definition="disentanglement_lib: pruned below 0.05",
        rows=None,
        factors=2,  # with one factor the vote is always right
        quick=True,
        test_options={"votes_train": 400, "votes_test": 400, "batch": 16},
    ),
    "beta_vae": Metric(
        beta_vae_score,
        "beta-VAE score",
        "How often a linear classifier identifies the factor that two groups of observations share; 1 is always.",
        definition="disentanglement_lib: 64 pairs, logistic regression",
        invariant=("permutation", "sign"),
        rows=None,
        factors=2,
        test_options={"votes_train": 400, "votes_test": 200, "batch": 16},
    ),
    "dci": Metric(
        dci_scores,
        "DCI",
        "How predictors of the factors use the latents, and how well they predict.",
        definition="disentanglement_lib: boosted trees",
        parts={
            "disentanglement": "Whether each latent is used to predict only one factor.",
            "completeness": "Whether each factor is predicted from only one latent.",
            "informativeness": "How well the factors are predicted from all latents, on other observations.",
        },
        with_importance=dci_with_importance,
    ),
    "sap": Metric(
        sap_score,
        "Separated attribute predictability (SAP)",
        "How much better the best single latent predicts each factor than the second best.",
        definition="disentanglement_lib: linear SVM, C = 0.01",
        invariant=("permutation", "sign"),  # the penalty of the SVM depends on the scale
    ),
    "modularity": Metric(
        modularity_score,
        "Modularity",
        "Whether each latent has information about only one factor; 1 is one each, 0 is all factors equally.",
        definition="disentanglement_lib: 20 bins, inactive codes count 0",
        factors=2,
        from_information=modularity_from_information,
        quick=True,
    ),
    "explicitness": Metric(
        explicitness_score,
        "Explicitness",
        "How well a linear classifier on all latents ranks the values of each factor; 0.5 is guessing.",
        definition="disentanglement_lib: area under the ROC curve, test rows",
    ),
    "mig_sup": Metric(
        mig_sup_score,
        "MIG per latent (MIG-sup)",
        "How much more information each latent has about one factor than about any other, mean over the latents.",
        definition="Li et al.: I/H(factor), 20 bins",
        from_information=mig_sup_from_information,
    ),
    "dcimig": Metric(
        dcimig_score,
        "DCIMIG",
        "The share of the factors' information that is in latents with information about only that factor.",
        definition="Sepliarskaia et al., 20 bins",
        from_information=dcimig_from_information,
    ),
    "jemmig": Metric(
        jemmig_score,
        "Joint entropy minus MIG (JEMMIG)",
        "MIG that also requires the best latent of each factor to contain no other information.",
        definition="Do & Tran, normalised, 20 bins",
        from_information=jemmig_from_information,
    ),
    "irs": Metric(
        irs_score,
        "Interventional robustness (IRS)",
        "How constant each latent stays while its factor is held constant and all others change.",
        definition="disentanglement_lib: quantile 0.99",
        invariant=("permutation", "sign"),  # codes are weighted by their largest deviation
        bootstrap=True,
        quick=True,
    ),
    "mcc": Metric(
        mcc_score,
        "Mean correlation coefficient (MCC)",
        "The linear correlation of each factor with a latent of its own, for the best one-to-one matching.",
        definition="absolute Pearson, optimal matching",
        bootstrap=True,
        quick=True,
    ),
    "infomec": Metric(
        infomec_scores,
        "InfoMEC",
        "Modularity, compactness and explicitness, all three based on information.",
        definition="Hsu et al.: 10 neighbours, pruned at 1/20 of the largest range",
        parts={
            "modularity": "InfoM: whether each latent has information about only one factor.",
            "compactness": "InfoC: whether the information about each factor is in only one latent.",
            "explicitness": "InfoE: how much of each factor a linear model of all latents predicts.",
        },
        invariant=("permutation", "sign"),  # codes are pruned by their range relative to the largest
        test_options={"iterations": 12},
    ),
    "downstream": Metric(
        downstream_scores,
        "Downstream prediction",
        "How well the factors are predicted from the latents after training on few labels.",
        definition="disentanglement_lib: logistic regression, cross-validated",
        parts={
            f"labels_{number}": f"Accuracy after training on {number:,} labels, or on all if there are fewer."
            for number in LABELS
        },
        test_options={"labels": (4,)},
    ),
    "group_mig": Metric(
        group_mig_score,
        "MIG between groups (group-MIG)",
        "How much more information the intended group of latents has about each factor than the other groups.",
        definition="20 bins",
        worst=-1.0,
        quick=True,
        needs=("groups",),
    ),
    "mig_posterior": Metric(
        mig_score_from_posterior,
        "MIG from the posterior",
        "MIG with its authors' estimator: samples of the posterior and exact mixture densities, without bins.",
        definition="Chen et al.: 10,000 samples",
        needs=("posterior",),
        test_options={"samples": 1000},
    ),
    "kl_decomposition": Metric(
        kl_decomposition,
        "KL decomposition",
        "The three parts of the KL divergence from the prior, in nats.",
        definition="Chen et al.: 10,000 samples",
        worst=-inf,
        best=inf,
        better="neither",
        parts={
            "index_code_mi": "Information of a code about which observation it belongs to, in nats.",
            "total_correlation": "Dependence between the latents, in nats; 0 is independent.",
            "dimension_wise_kl": "KL divergence of the single latents from their prior, in nats.",
            "kl": "The whole KL divergence from the prior, the sum of the three.",
        },
        invariant=("permutation", "sign"),
        factors=0,
        needs=("posterior",),
        test_options={"samples": 1500},
    ),
    "gaussian_total_correlation": Metric(
        gaussian_total_correlation,
        "Gaussian total correlation",
        "Correlation between the latents, in nats; 0 is uncorrelated. Needs no factors.",
        definition="disentanglement_lib",
        worst=inf,
        best=0.0,
        better="lower",
        factors=0,
        bootstrap=True,
    ),
    "active_dimensions": Metric(
        active_dimensions,
        "Active latents",
        "Number of latents that vary between observations: variance above 0.01. Needs no factors.",
        definition="Burda et al.: variance above 0.01",
        best=inf,
        better="neither",
        invariant=("permutation", "sign"),
        factors=0,
        bootstrap=True,
    ),
}


def describe(score: str) -> Metric:
    """Return the entry of a score: "mig", or "infomec.modularity" with the title and description of that part."""
    name, _, part = score.partition(".")
    metric = METRICS[name]
    if not part:
        return metric
    return metric._replace(title=f"{metric.title}: {part.replace('_', ' ')}", description=metric.parts[part])
