"""Information under the aggregate posterior q(z) = 1/N sum_n q(z|n), computed from the posteriors.

Without bins: the densities of samples of q(z|n) under mixtures of posteriors are computed exactly, over all rows for
q(z_j) and over the rows with one value of a factor for q(z_j|v_k). The cost is samples x rows x latents densities:
thousands of rows are feasible on a CPU, a million on a GPU.

Shape letters: N rows, S samples, D latents, K factors, n rows of one value.
"""

import math
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from unweave.errors import invalid, renamed_arguments
from unweave.metrics.histogram_mi import device_of, table_information
from unweave.metrics.information import mig_gaps
from unweave.metrics.inputs import (
    Array,
    FactorTypes,
    Floats,
    MetricInputs,
    array_error,
    as_matrix,
    check_at_least,
    classes,
    read_table,
    varying_factors,
)
from unweave.metrics.metric import Metric
from unweave.ops.divergence import kl_standard, log_gaussian, log_standard

_CHUNK = {"cpu": 1 << 19, "cuda": 1 << 26}  # densities computed at once


class Sampled(NamedTuple):
    """Posteriors, samples of them, and the row of each sample."""

    mean_DN: Tensor
    logvar_DN: Tensor
    z_DS: Tensor
    rows_S: Tensor


def draw(mean: Array, logvar: Array, *, samples: int, seed: int, device: str | None) -> Sampled:
    """Draw samples of the posteriors; every row is used once before any row is used again."""
    check_at_least("samples", samples, 1)
    for name, values in (("mean", mean), ("logvar", logvar)):
        if not isinstance(values, Tensor):  # tensors stay on their device and are checked below
            as_matrix(values, name)
    where = device_of(mean, device) or "cpu"
    mean_ND, logvar_ND = (torch.as_tensor(values).detach().to(where) for values in (mean, logvar))
    if mean_ND.ndim != 2 or mean_ND.shape != logvar_ND.shape or not mean_ND.numel():
        accepted = f"an array [rows, latents] like mean, of shape {tuple(mean_ND.shape)}"
        raise array_error("logvar", f"shape {tuple(logvar_ND.shape)}", accepted)
    _check_finite(mean_ND, logvar_ND)
    kind = torch.float64 if mean_ND.dtype == torch.float64 and torch.device(where).type == "cpu" else torch.float32
    rng = np.random.default_rng(seed)
    rows = np.concatenate([rng.permutation(len(mean_ND)) for _ in range(-(-samples // len(mean_ND)))])[:samples]
    rows_S = torch.as_tensor(rows, device=where)
    noise_DS = torch.as_tensor(rng.standard_normal((mean_ND.shape[1], samples)), dtype=kind, device=where)
    mean_DN, logvar_DN = (values.T.to(kind).contiguous() for values in (mean_ND, logvar_ND))
    z_DS = mean_DN[:, rows_S] + torch.exp(0.5 * logvar_DN[:, rows_S]) * noise_DS
    return Sampled(mean_DN, logvar_DN, z_DS, rows_S)


def _check_finite(mean: Tensor, logvar: Tensor) -> None:
    for name, values in (("mean", mean), ("logvar", logvar)):
        low, high = (float(v) for v in torch.aminmax(values))
        if not (math.isfinite(low) and math.isfinite(high)):
            raise array_error(name, "NaN or infinity", "finite numbers")
        if name == "logvar" and max(-low, high) > 80.0:  # the density would overflow in float32
            raise array_error(name, f"{low:.3g} to {high:.3g}", "from -80 to 80")


def log_mixture(drawn: Sampled, rows: Tensor | None = None, samples: Tensor | None = None) -> Tensor:
    """Return log 1/n sum_n q(z_j|n) for each latent of each sample, [D, S], or for these rows and samples."""
    mean_DN, logvar_DN, z_DS = drawn.mean_DN, drawn.logvar_DN, drawn.z_DS
    if rows is not None and samples is not None:
        mean_DN, logvar_DN, z_DS = mean_DN[:, rows], logvar_DN[:, rows], z_DS[:, samples]
    found = torch.empty_like(z_DS)
    for part in _parts(z_DS, mean_DN.shape[1]):
        for d in range(len(z_DS)):
            found[d, part] = _log_sum_exp(_log_densities(z_DS[d, part], mean_DN[d], logvar_DN[d]))
    return found - math.log(mean_DN.shape[1])


def _parts(z_DS: Tensor, rows: int) -> Iterator[slice]:
    """Yield slices of the samples, so that a slice times the rows has at most a chunk of densities."""
    step = max(1, _CHUNK.get(z_DS.device.type, 1 << 22) // rows)
    return (slice(start, start + step) for start in range(0, z_DS.shape[1], step))


def _log_densities(z_S: Tensor, mean_N: Tensor, logvar_N: Tensor) -> Tensor:
    """Return log N(z; mean, var) of each sample under each row, [S, N]; works in place for speed."""
    away_SN = torch.sub(z_S[:, None], mean_N).mul_(torch.exp(-0.5 * logvar_N) * math.sqrt(0.5))
    top_N = log_gaussian(mean_N, mean_N, logvar_N)
    return torch.addcmul(top_N, away_SN, away_SN, value=-1.0, out=away_SN)


def _log_sum_exp(values_SN: Tensor) -> Tensor:
    """Return torch.logsumexp over the rows; overwrites its argument."""
    most_S = values_SN.amax(1)
    # The lower bound does not change the sum; it avoids slow subnormal numbers.
    return values_SN.sub_(most_S[:, None]).clamp_(min=-80.0).exp_().sum(1).log_().add_(most_S)


@renamed_arguments(kinds="factor_types")
def posterior_information_matrix(
    mean: Array,
    logvar: Array,
    factors: Array,
    *,
    samples: int = 10_000,
    seed: int = 0,
    factor_types: FactorTypes = None,
    device: str | None = None,
) -> Floats:
    """Return I(latent; factor) under the aggregate posterior in nats, [D, K]; 0 for a factor with a single value."""
    drawn, table = _read(mean, logvar, factors, samples, seed, factor_types, device)
    return _informations(drawn, table, list(range(len(table.factor_types))))


def _read(
    mean: Array, logvar: Array, factors: Array, samples: int, seed: int, factor_types: FactorTypes, device: str | None
) -> tuple[Sampled, MetricInputs]:
    drawn = draw(mean, logvar, samples=samples, seed=seed, device=device)
    table = read_table(np.zeros((drawn.mean_DN.shape[1], 1)), factors, factor_types=factor_types)
    return drawn, table


def _informations(drawn: Sampled, table: MetricInputs, factors: list[int]) -> Floats:
    """Return the mean of log q(z_j|v_k) - log q(z_j) over the samples whose row has factor k, at least 0, [D, K]."""
    marginal_DS = log_mixture(drawn)
    information_DK = np.zeros((len(marginal_DS), len(factors)))
    for place, k in enumerate(factors):
        labels_N = np.full(len(table.factors), -1)
        rows, labels = classes(table, k)
        labels_N[rows] = labels
        sampled_S = labels_N[drawn.rows_S.cpu().numpy()]
        total_D = torch.zeros(len(marginal_DS), dtype=torch.float64, device=marginal_DS.device)
        for value in np.unique(sampled_S[sampled_S >= 0]):
            rows_n, samples_s = (
                torch.as_tensor(np.flatnonzero(found == value), device=marginal_DS.device)
                for found in (labels_N, sampled_S)
            )
            total_D += (log_mixture(drawn, rows_n, samples_s) - marginal_DS[:, samples_s]).sum(1, dtype=torch.float64)
        information_DK[:, place] = (total_D / max(int((sampled_S >= 0).sum()), 1)).cpu().numpy()
    return np.maximum(information_DK, 0.0)


@renamed_arguments(kinds="factor_types")
def mig_score_from_posterior(
    mean: Array,
    logvar: Array,
    factors: Array,
    *,
    samples: int = 10_000,
    seed: int = 0,
    factor_types: FactorTypes = None,
    device: str | None = None,
) -> float:
    """MIG with the estimator of its authors (Chen et al. 2018, appendix C, https://arxiv.org/abs/1802.04942), in 0..1.

    `mean` and `logvar` [N, D] are the diagonal Gaussian posteriors of the rows. Unbiased if the rows are the whole data
    set; in a part of it the posterior of each sample itself has too much weight.

    >>> factors = [[0, 0], [0, 1], [1, 0], [1, 1]]
    >>> round(mig_score_from_posterior(factors, [[-12, -12]] * 4, factors), 6)
    1.0
    """
    drawn, table = _read(mean, logvar, factors, samples, seed, factor_types, device)
    chosen = varying_factors(table)
    entropies_K = np.array([table_information(np.diag(np.bincount(classes(table, k)[1]))) for k in chosen])
    return float(np.clip(mig_gaps(_informations(drawn, table, chosen), entropies_K).mean(), 0.0, 1.0))


def kl_decomposition(
    mean: Array,
    logvar: Array,
    factors: Array | None = None,
    *,
    samples: int = 10_000,
    size: int | None = None,
    seed: int = 0,
    device: str | None = None,
) -> dict[str, float]:
    """Decomposition of the KL to the prior into three parts (Chen et al. 2018, equation 2), in nats.

    `index_code_mi`: information of a code about its observation; `total_correlation`: dependence between latents;
    `dimension_wise_kl`: KL of each latent to its prior. `kl` is their sum, computed exactly; the parts are means over
    `samples`. `size` is the number of observations that the rows were drawn from: the posterior of each sample itself
    then has weight 1/size, not 1/rows. The factors are not used.
    """
    drawn = draw(mean, logvar, samples=samples, seed=seed, device=device)
    rows = drawn.mean_DN.shape[1]
    if size is not None and size < rows:
        raise invalid("size", size, f"at least the number of rows, {rows}")
    joint_S, product_S = _log_joint_and_product(drawn, size or rows)
    own_mean, own_logvar = drawn.mean_DN[:, drawn.rows_S], drawn.logvar_DN[:, drawn.rows_S]
    own_S = log_gaussian(drawn.z_DS, own_mean, own_logvar).sum(0)
    prior_S = log_standard(drawn.z_DS).sum(0)
    # One latent at a time, to save memory.
    kl_D = [kl_standard(mean_N, logvar_N).double().mean() for mean_N, logvar_N in zip(*drawn[:2], strict=True)]
    return {
        "index_code_mi": float((own_S - joint_S).double().mean()),
        "total_correlation": float((joint_S - product_S).double().mean()),
        "dimension_wise_kl": float((product_S - prior_S).double().mean()),
        "kl": float(sum(kl_D)),
    }


def _log_joint_and_product(drawn: Sampled, size: int) -> tuple[Tensor, Tensor]:
    """Return log q(z) and the sum of log q(z_j) of each sample, [S] each."""
    latents, rows = drawn.mean_DN.shape
    count = drawn.z_DS.shape[1]
    # Weight 1/size for the row of the sample, and equal weights for all other rows.
    other = math.log((size - 1) / size / (rows - 1)) if rows > 1 else -math.inf
    joint, product = drawn.z_DS.new_empty(count), drawn.z_DS.new_zeros(count)
    for part in _parts(drawn.z_DS, rows):
        own = drawn.rows_S[part, None]
        log_w = joint.new_full((len(own), rows), other)
        log_w.scatter_(1, own, -math.log(size) if rows > 1 else 0.0)
        total = log_w.clone()
        for d in range(latents):
            log_q = _log_densities(drawn.z_DS[d, part], drawn.mean_DN[d], drawn.logvar_DN[d])
            total += log_q
            product[part] += _log_sum_exp(log_q.add_(log_w))
        joint[part] = _log_sum_exp(total)
    return joint, product


MIG_POSTERIOR = Metric(
    "mig_posterior",
    mig_score_from_posterior,
    "MIG from the posterior",
    "MIG with its authors' estimator: samples of the posterior and exact mixture densities, without bins.",
    definition="Chen et al.: 10,000 samples",
    needs=("posterior",),
    test_options={"samples": 1000},
)

KL_DECOMPOSITION = Metric(
    "kl_decomposition",
    kl_decomposition,
    "KL decomposition",
    "The three parts of the KL divergence from the prior, in nats.",
    definition="Chen et al.: 10,000 samples",
    worst=-math.inf,
    best=math.inf,
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
)
