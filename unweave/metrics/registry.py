"""The list of metrics: functions of `codes` [N, D] and `factors` [N, K], never of a model.

A new metric is a function and its declaration (see metric.py) in one file, an entry here, and the page
`docs/reference/metrics/<name>.md`.
"""

from unweave.metrics.correlation import ACTIVE_DIMENSIONS, GAUSSIAN_TOTAL_CORRELATION, MCC
from unweave.metrics.dci import DCI
from unweave.metrics.downstream import DOWNSTREAM
from unweave.metrics.explicitness import EXPLICITNESS
from unweave.metrics.fixed_factor import BETA_VAE, FACTOR_VAE
from unweave.metrics.infomec import INFOMEC
from unweave.metrics.information import DCIMIG, GROUP_MIG, JEMMIG, MIG, MIG_SUP, MODULARITY
from unweave.metrics.irs import IRS
from unweave.metrics.metric import Metric
from unweave.metrics.posterior import KL_DECOMPOSITION, MIG_POSTERIOR
from unweave.metrics.sap import SAP

METRICS: dict[str, Metric] = {
    metric.name: metric
    for metric in (
        MIG,
        FACTOR_VAE,
        BETA_VAE,
        DCI,
        SAP,
        MODULARITY,
        EXPLICITNESS,
        MIG_SUP,
        DCIMIG,
        JEMMIG,
        IRS,
        MCC,
        INFOMEC,
        DOWNSTREAM,
        GROUP_MIG,
        MIG_POSTERIOR,
        KL_DECOMPOSITION,
        GAUSSIAN_TOTAL_CORRELATION,
        ACTIVE_DIMENSIONS,
    )
}


def describe(score: str) -> Metric:
    """Return the entry of a score: "mig", or "infomec.modularity" with the title and description of that part."""
    name, _, part = score.partition(".")
    metric = METRICS[name]
    if not part:
        return metric
    return metric._replace(title=f"{metric.title}: {part.replace('_', ' ')}", description=metric.parts[part])
