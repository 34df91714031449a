"""Logistic regression with the objective and limits of scikit-learn, several times faster.

Shape letters: N rows, D codes, E = D + 1, V classes, M test rows, P problems solved together.
"""

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from unweave.metrics.inputs import Floats, Indices
from unweave.ops.threads import single_thread


def varies(codes_ND: Floats, deviation_D: Floats) -> NDArray[np.bool_]:
    """Return which codes have a spread to divide by."""
    # The deviation of a constant may be a rounding error; its range is exactly 0. The deviation of a code with a range
    # below about 1e-154 underflows, so such a code counts as constant.
    return (np.ptp(codes_ND, axis=0) > 0) & (deviation_D > np.finfo(np.float64).tiny)


def standardize(train_ND: Floats, *others: Floats) -> list[Floats]:
    """Standardise codes with the mean and deviation of the train rows; a constant code becomes 0."""
    mean_D, deviation_D = train_ND.mean(axis=0), train_ND.std(axis=0)
    scale_D = np.divide(1.0, deviation_D, out=np.zeros(len(mean_D)), where=varies(train_ND, deviation_D))
    return [(codes - mean_D) * scale_D for codes in (train_ND, *others)]


def fit_logistic(
    codes_ND: Floats,
    labels_N: Indices,
    classes: int,
    *,
    inverse_penalty: float = 1.0,
    weights_N: Floats | None = None,
    iterations: int = 100,
    device: torch.device | str | None = None,
) -> Floats:
    """Return the weights [D + 1, V] of a softmax regression, intercepts last.

    Minimises -log likelihood + |weights|^2 / (2 inverse_penalty), without penalty on the intercepts, by L-BFGS from 0
    with the limits of scikit-learn (100 iterations, gradient 1e-4 per row). As there, two classes share one column.
    `inverse_penalty` is C of scikit-learn; `weights_N` are weights of the rows with mean 1.
    """
    from scipy.optimize import minimize

    x_NE = torch.from_numpy(np.column_stack([codes_ND, np.ones(len(codes_ND))])).to(device)
    labels = torch.from_numpy(labels_N).to(device)
    counts_N1 = (torch.ones(len(x_NE)) if weights_N is None else torch.from_numpy(weights_N))[:, None].to(x_NE)
    hits_EV = x_NE.T @ (torch.nn.functional.one_hot(labels, classes).double() * counts_N1)
    free = slice(0 if classes > 2 else 1, None)  # with two classes the weights of the first one stay 0

    def loss(flat: Floats) -> tuple[float, Floats]:
        weights_EV = torch.zeros_like(hits_EV)
        weights_EV[:, free] = torch.from_numpy(flat).to(x_NE.device).view(len(hits_EV), -1)
        scores_NV = x_NE @ weights_EV
        scores_NV -= scores_NV.amax(1, keepdim=True)
        right = (scores_NV.gather(1, labels[:, None]) * counts_N1).sum()
        guess_NV = scores_NV.exp_()
        sums_N1 = guess_NV.sum(1, keepdim=True)
        weights_EV[-1] = 0  # no penalty on intercepts
        value = (sums_N1.log() * counts_N1).sum() - right + weights_EV.square().sum() / (2 * inverse_penalty)
        gradient_EV = x_NE.T @ guess_NV.mul_(counts_N1 / sums_N1) - hits_EV + weights_EV / inverse_penalty
        return float(value) / len(x_NE), gradient_EV[:, free].reshape(-1).cpu().numpy() / len(x_NE)

    weights = np.zeros(hits_EV.shape)
    limits = {"maxiter": iterations, "maxls": 50, "gtol": 1e-4, "ftol": 64 * np.finfo(np.float64).eps}
    with single_thread():
        found = minimize(loss, weights[:, free].ravel(), jac=True, method="L-BFGS-B", options=limits)
    weights[:, free] = found.x.reshape(len(weights), -1)
    return weights


_HISTORY = 10  # steps kept by L-BFGS
_TOLERANCE = 1e-4  # largest gradient entry per row of a converged problem


def fit_logistics(
    codes_ND: Floats,
    labels_N: Indices,
    classes: int,
    counts_PN: Floats,
    inverse_penalties_P: Floats,
    *,
    iterations: int = 100,
    device: torch.device | str | None = None,
) -> Floats:
    """Solve P problems of `fit_logistic` on the same rows, each with its own row counts and inverse penalty [P, E, V].

    All problems take L-BFGS steps together. Each has its own step length, halved until the loss decreases; converged
    problems are removed.
    """
    x_NE = torch.from_numpy(np.column_stack([codes_ND, np.ones(len(codes_ND))])).to(device)
    right_NV = torch.nn.functional.one_hot(torch.from_numpy(labels_N).to(device), classes).to(x_NE)
    counts_PN1 = torch.from_numpy(counts_PN).to(x_NE)[..., None]
    counts_PN1 = counts_PN1 / counts_PN1.sum(1, keepdim=True)  # the loss is a weighted mean over rows
    penalty_P = 1.0 / (torch.from_numpy(inverse_penalties_P * counts_PN.sum(1)).to(x_NE))
    found_PEV = x_NE.new_zeros(len(penalty_P), x_NE.shape[1], classes)
    free = x_NE.new_ones(x_NE.shape[1], classes)  # with two classes the weights of the first one stay 0
    if classes == 2:
        free[:, 0] = 0.0

    def loss(flat_PX: Tensor, which: Tensor) -> tuple[Tensor, Tensor]:
        weights_PEV = flat_PX.view(-1, *free.shape)
        logs_PNV = (x_NE @ weights_PEV).log_softmax(2)
        counts = counts_PN1[which]
        kept_PEV = weights_PEV.clone()
        kept_PEV[:, -1] = 0.0  # no penalty on intercepts
        cost_P = 0.5 * penalty_P[which] * kept_PEV.square().sum((1, 2))
        value_P = cost_P - (logs_PNV * right_NV * counts).sum((1, 2))
        gradient_PEV = x_NE.T @ ((logs_PNV.exp_() - right_NV) * counts) + penalty_P[which, None, None] * kept_PEV
        return value_P, (gradient_PEV * free).flatten(1)

    which = torch.arange(len(found_PEV), device=x_NE.device)
    point = found_PEV.flatten(1).clone()
    value, gradient = loss(point, which)
    past: list[tuple[Tensor, Tensor, Tensor]] = []  # steps, changes of the gradient, and 1 / their product
    for _ in range(iterations):
        open_P = gradient.abs().amax(1) > _TOLERANCE
        if not bool(open_P.all()):
            found_PEV[which] = point.view(-1, *free.shape)
            which, point, value, gradient = (t[open_P] for t in (which, point, value, gradient))
            past = [(s[open_P], y[open_P], r[open_P]) for s, y, r in past]
        if not len(which):
            break
        direction = _direction(gradient, past)
        decrease = (direction * gradient).sum(1)
        length = torch.ones_like(decrease) if past else 1.0 / gradient.abs().sum(1).clamp(min=1.0)
        for _ in range(30):
            new_value, new_gradient = loss(point + length[:, None] * direction, which)
            accepted = new_value <= value + 1e-4 * length * decrease
            if bool(accepted.all()):
                break
            length = torch.where(accepted, length, 0.5 * length)
        step, change = length[:, None] * direction, new_gradient - gradient
        product = (step * change).sum(1)
        past = [*past[1 - _HISTORY :], (step, change, torch.where(product > 1e-300, 1.0 / product, 0.0))]
        point, value, gradient = point + step, new_value, new_gradient
    found_PEV[which] = point.view(-1, *free.shape)
    return found_PEV.cpu().numpy()


def _direction(gradient_PX: Tensor, past: list[tuple[Tensor, Tensor, Tensor]]) -> Tensor:
    """Return the L-BFGS direction from the gradient and the last steps (Nocedal & Wright, algorithm 7.4)."""
    direction, shares = -gradient_PX, []
    for step, change, inverse in reversed(past):
        shares.append(inverse * (step * direction).sum(1))
        direction = direction - shares[-1][:, None] * change
    if past:
        step, change, inverse = past[-1]
        scale = 1.0 / (inverse * change.square().sum(1))
        direction = direction * torch.where(inverse > 0, scale, 1.0)[:, None]
    for (step, change, inverse), share in zip(past, reversed(shares), strict=True):
        direction = direction + (share - inverse * (change * direction).sum(1))[:, None] * step
    return direction


def class_scores(weights: Floats, codes_MD: Floats) -> Floats:
    """Return the score of each class in each row [M, V]; the largest is the prediction."""
    with single_thread():
        return (torch.from_numpy(codes_MD) @ torch.from_numpy(weights[:-1]) + torch.from_numpy(weights[-1])).numpy()


def probabilities(scores_MV: Floats) -> Floats:
    with single_thread():
        return torch.from_numpy(scores_MV).softmax(1).numpy()
