"""Match of the aggregate posterior with the prior, and classification from few labels (Zhao et al. 2019).

Functions of arrays, like all metrics. The codes that are compared with the prior are samples z ~ q(z|x), not means.

Shape letters: N rows, D codes, Y classes.
"""

import numpy as np
import torch
from torch import Tensor

from unweave.errors import invalid
from unweave.metrics.correlation import covariance
from unweave.metrics.histogram_mi import device_of
from unweave.metrics.inputs import Array, array_error, as_matrix
from unweave.metrics.solvers.linear import standardize
from unweave.ops.mmd import inverse_multiquadratic

BLOCK = 256  # rows compared at once; all pairs of 10,000 rows would need gigabytes
_SMALLEST = 1e-12  # smaller variances are rounding errors


def prior_mmd(codes: Array, *, seed: int = 0, device: str | None = None) -> float:
    """Return the unbiased MMD^2 between the codes and as many samples of N(0, I): about 0 if they are N(0, I), below 2.

    The kernel is the inverse multiquadratic of `ops.mmd`.
    """
    codes_ND = as_matrix(codes, "codes")
    if len(codes_ND) < 2:
        raise array_error("codes", f"{len(codes_ND)} rows", "2 rows or more")
    prior_ND = np.random.default_rng(seed).standard_normal(codes_ND.shape)
    where = device_of(codes, device) or "cpu"
    x_ND, y_ND = (torch.as_tensor(values, dtype=torch.float32, device=where) for values in (codes_ND, prior_ND))
    return _within(x_ND) + _within(y_ND) - 2.0 * _total(x_ND, y_ND) / len(x_ND) ** 2


def _within(z_ND: Tensor) -> float:
    """Return the mean kernel of two different rows; the kernel of a row with itself is 1."""
    count = len(z_ND)
    return (_total(z_ND, z_ND) - count) / (count * (count - 1))


def _total(x_ND: Tensor, y_ND: Tensor) -> float:
    """Return the sum of the kernel over all pairs, computed block by block."""
    latents, total = x_ND.shape[1], torch.zeros((), dtype=torch.float64, device=x_ND.device)
    for x_bD in x_ND.split(BLOCK):
        for y_bD in y_ND.split(BLOCK):
            # Computed from differences, because products cancel for close rows.
            distance = torch.cdist(x_bD, y_bD, compute_mode="donot_use_mm_for_euclid_dist")
            total += inverse_multiquadratic(distance.square(), latents).sum(dtype=torch.float64)
    return float(total)


def log_det_covariance(codes: Array) -> float:
    """Return the log-determinant of the codes' covariance: 0 for N(0, I), lower if they vary less, higher if more.

    A direction without variance counts as -27.6 instead of minus infinity.

    >>> round(log_det_covariance([[1, 2], [-1, 2], [1, -2], [-1, -2]]), 3)  # variances 4/3 and 16/3
    1.962
    """
    variances = np.linalg.eigvalsh(covariance(as_matrix(codes, "codes").astype(np.float64, copy=False)))
    return float(np.log(np.maximum(variances, _SMALLEST)).sum())


def class_divergence(found: Array, true: Array) -> float:
    """Return KL(found || true) of class frequencies in nats: 0 if equal, infinite if a found class has true share 0.

    Both are counts or shares [Y]. A single found class, of ten equally frequent true ones, gives log 10.

    >>> round(class_divergence([4, 0], [5, 5]), 3)
    0.693
    """
    shares = [_shares(values, name) for values, name in ((found, "found"), (true, "true"))]
    if len(shares[0]) != len(shares[1]):
        raise array_error("found", f"{len(shares[0])} classes", f"counts of {len(shares[1])} classes, like true")
    found_y, true_y = (values[shares[0] > 0] for values in shares)
    if not true_y.all():
        return float("inf")
    return max(0.0, float((found_y * np.log(found_y / true_y)).sum()))


def _shares(values: Array, name: str) -> np.ndarray:
    counts_Y = as_matrix(np.atleast_2d(np.asarray(values)), name)[0].astype(np.float64)
    if counts_Y.min() < 0 or not counts_Y.sum() > 0:
        raise array_error(name, counts_Y.tolist(), "non-negative counts of classes, not all 0")
    return counts_Y / counts_Y.sum()


def label_error(codes: Array, classes: Array, *, labels: int = 1000, seed: int = 0) -> float:
    """Return the test error of an SVM that is trained on `labels` random rows, in 0..1; the other rows are test rows.

    The SVM has an RBF kernel and the defaults of scikit-learn, on standardised codes.
    """
    from sklearn.svm import SVC

    codes_ND = as_matrix(codes, "codes").astype(np.float64, copy=False)
    class_N = as_matrix(np.atleast_2d(np.asarray(classes)), "classes")[0]
    if len(class_N) != len(codes_ND):
        raise array_error("classes", f"{len(class_N)} entries", f"an array of {len(codes_ND)} classes, one per row")
    if not 0 < labels < len(codes_ND):
        raise invalid("labels", labels, f"from 1 to {len(codes_ND) - 1}", hint="the other rows are test rows")
    known, other = np.split(np.random.default_rng(seed).permutation(len(codes_ND)), [labels])
    known_ND, other_ND = standardize(codes_ND[known], codes_ND[other])
    if len(np.unique(class_N[known])) == 1:
        return float((class_N[other] != class_N[known[0]]).mean())
    return float((SVC().fit(known_ND, class_N[known]).predict(other_ND) != class_N[other]).mean())
