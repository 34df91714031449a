"""How well the codes of all observations fill the prior, and what few labels are worth on them (Zhao et al. 2019).

Functions of arrays like all metrics, but of samples z ~ q(z|x) rather than of means where they are held to the prior.

Shape letters: N rows, D codes, Y classes.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from unweave.errors import UserError
from unweave.metrics.correlation import covariance
from unweave.metrics.histogram_mi import device_of
from unweave.metrics.inputs import Array, as_matrix
from unweave.metrics.solvers.linear import standardize
from unweave.ops.mmd import inverse_multiquadratic

_BLOCK = 256  # rows compared at once: all pairs of 10,000 rows would need gigabytes
_SMALLEST = 1e-12  # variances below this are rounding: codes in that direction do not move


def prior_mmd(codes: Array, *, seed: int = 0, device: str | None = None) -> float:
    """MMD^2 of the codes to as many draws of N(0, 1), unbiased: about 0, at times below, for codes of that law.

    The kernel is the inverse multiquadratic of `ops.mmd`, so 2 is more than can be reached.
    """
    codes_ND = as_matrix(codes, "codes")
    if len(codes_ND) < 2:
        raise UserError(f"codes: has {len(codes_ND)} rows; accepted are 2 or more")
    prior_ND = np.random.default_rng(seed).standard_normal(codes_ND.shape)
    where = device_of(codes, device) or "cpu"
    x_ND, y_ND = (torch.as_tensor(values, dtype=torch.float32, device=where) for values in (codes_ND, prior_ND))
    return _within(x_ND) + _within(y_ND) - 2.0 * _total(x_ND, y_ND) / len(x_ND) ** 2


def _within(z_ND: Tensor) -> float:
    """The mean kernel of two different rows; of a row with itself it is 1."""
    count = len(z_ND)
    return (_total(z_ND, z_ND) - count) / (count * (count - 1))


def _total(x_ND: Tensor, y_ND: Tensor) -> float:
    """The sum of the kernel over all pairs, block by block."""
    latents, total = x_ND.shape[1], torch.zeros((), dtype=torch.float64, device=x_ND.device)
    for x_bD in x_ND.split(_BLOCK):
        for y_bD in y_ND.split(_BLOCK):
            # From differences: products of codes would cancel where two are close.
            distance = torch.cdist(x_bD, y_bD, compute_mode="donot_use_mm_for_euclid_dist")
            total += inverse_multiquadratic(distance.square(), latents).sum(dtype=torch.float64)
    return float(total)


def log_det_covariance(codes: Array) -> float:
    """Log-determinant of the codes' covariance: 0 for N(0, I), below if they fill less room, above if more.

    A direction in which codes do not move, whose value is minus infinity, counts -27.6.

    >>> round(log_det_covariance([[1, 2], [-1, 2], [1, -2], [-1, -2]]), 3)  # variances 4/3 and 16/3
    1.962
    """
    variances = np.linalg.eigvalsh(covariance(as_matrix(codes, "codes").astype(np.float64, copy=False)))
    return float(np.log(np.maximum(variances, _SMALLEST)).sum())


def class_divergence(found: Array, true: Array) -> float:
    """KL, in nats, of the class shares that were found from the true ones: 0 if equal, infinite for a class not there.

    Both are counts or shares [Y]. A class that is never found costs no more than the others gain by it: one class
    alone, of ten equally frequent ones, is log 10.

    >>> round(class_divergence([4, 0], [5, 5]), 3)
    0.693
    """
    shares = [_shares(values, name) for values, name in ((found, "found"), (true, "true"))]
    if len(shares[0]) != len(shares[1]):
        raise UserError(f"found: has {len(shares[0])} classes; accepted are the {len(shares[1])} of true")
    found_y, true_y = (values[shares[0] > 0] for values in shares)
    if not true_y.all():
        return float("inf")
    return max(0.0, float((found_y * np.log(found_y / true_y)).sum()))


def _shares(values: Array, name: str) -> np.ndarray:
    counts_Y = as_matrix(np.atleast_2d(np.asarray(values)), name)[0].astype(np.float64)
    if counts_Y.min() < 0 or not counts_Y.sum() > 0:
        raise UserError(f"{name}: is no count of classes; accepted are numbers of 0 or more, not all 0")
    shares_Y: np.ndarray = counts_Y / counts_Y.sum()
    return shares_Y


def label_error(codes: Array, classes: Array, *, labels: int = 1000, seed: int = 0) -> float:
    """Share of wrong classes, in 0..1, if `labels` rows drawn by the seed are known and the others are told by an SVM.

    Its kernel is the radial one, on codes of deviation 1, with the penalty (C = 1) and the width of scikit-learn.
    """
    from sklearn.svm import SVC

    codes_ND = as_matrix(codes, "codes").astype(np.float64, copy=False)
    class_N = as_matrix(np.atleast_2d(np.asarray(classes)), "classes")[0]
    if len(class_N) != len(codes_ND):
        raise UserError(f"classes: has {len(class_N)} entries; accepted is one for each of the {len(codes_ND)} rows")
    if not 0 < labels < len(codes_ND):
        raise UserError(f"labels: is {labels}; accepted is 1 to {len(codes_ND) - 1}, for others are tested")
    known, other = np.split(np.random.default_rng(seed).permutation(len(codes_ND)), [labels])
    known_ND, other_ND = standardize(codes_ND[known], codes_ND[other])
    if len(np.unique(class_N[known])) == 1:
        return float((class_N[other] != class_N[known[0]]).mean())
    return float((SVC().fit(known_ND, class_N[known]).predict(other_ND) != class_N[other]).mean())
