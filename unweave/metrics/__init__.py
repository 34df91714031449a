"""Metrics of disentanglement: functions of `codes` [N, D] and `factors` [N, K]. The list of them is in registry.py."""

from types import FunctionType

from unweave.errors import renamed_arguments
from unweave.metrics.clusters import cluster_error, cluster_labels
from unweave.metrics.correlation import (
    active_dimensions,
    gaussian_total_correlation,
    gaussian_wasserstein_correlation,
    mcc_score,
)
from unweave.metrics.dci import dci_scores, importance_matrix
from unweave.metrics.downstream import downstream_scores
from unweave.metrics.explicitness import explicitness_score
from unweave.metrics.fixed_factor import beta_vae_score, factor_vae_score
from unweave.metrics.histogram_mi import discretize, entropies, mutual_information_matrix
from unweave.metrics.infomec import infomec_scores
from unweave.metrics.information import (
    dcimig_score,
    group_mig_score,
    jemmig_score,
    mig_per_factor,
    mig_score,
    mig_sup_score,
    modularity_score,
)
from unweave.metrics.irs import irs_score
from unweave.metrics.metric import Metric
from unweave.metrics.posterior import kl_decomposition, mig_score_from_posterior, posterior_information_matrix
from unweave.metrics.rank_correlation import agreement
from unweave.metrics.registry import METRICS, describe
from unweave.metrics.retrieval import recall_at_1
from unweave.metrics.sap import sap_score

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

for _name in __all__:  # `factor_types` was called `kinds` in earlier versions
    if isinstance(_function := globals()[_name], FunctionType) and "factor_types" in _function.__code__.co_varnames:
        globals()[_name] = renamed_arguments(kinds="factor_types")(_function)
        globals()[_name].__module__ = __name__  # where pickle finds it
