"""Linear classifiers, fitted the way the reference's scikit-learn ones are, several times faster.

Shape letters: N rows, D codes, E = D + 1, V classes, M test rows, P problems solved together.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from unweave.metrics.inputs import Floats, Indices
from unweave.ops.threads import single_thread


def standardize(train_ND: Floats, *others: Floats) -> list[Floats]:
    """Codes with mean 0 and deviation 1 over the train rows, and others moved alike; a constant code becomes 0."""
    # A constant whose mean is not exact has a deviation of rounding errors; its range is exactly 0.
    alive_D = np.ptp(train_ND, axis=0) > 0
    mean_D = train_ND.mean(axis=0)
    scale_D = np.divide(1.0, train_ND.std(axis=0), out=np.zeros(len(mean_D)), where=alive_D)
    return [(codes - mean_D) * scale_D for codes in (train_ND, *others)]


def fit_logistic(
    codes_ND: Floats,
    labels_N: Indices,
    classes: int,
    *,
    strength: float = 1.0,
    weights_N: Floats | None = None,
    iterations: int = 100,
    device: torch.device | str | None = None,
) -> Floats:
    """Weights [D + 1, V] of the most likely softmax regression, the intercepts last.

    Minimises -log likelihood + |weights|^2 / (2 strength), intercepts free, by L-BFGS from 0 with the limits of
    scikit-learn's LogisticRegression (100 iterations, gradient 1e-4 a row). Two classes share one column, as there.
    `weights_N` count rows more or less than once; they are to have mean 1.
    """
    from scipy.optimize import minimize

    x_NE = torch.from_numpy(np.column_stack([codes_ND, np.ones(len(codes_ND))])).to(device)
    labels = torch.from_numpy(labels_N).to(device)
    counts_N1 = (torch.ones(len(x_NE)) if weights_N is None else torch.from_numpy(weights_N))[:, None].to(x_NE)
    hits_EV = x_NE.T @ (torch.nn.functional.one_hot(labels, classes).double() * counts_N1)
    free = slice(0 if classes > 2 else 1, None)  # with two classes the first one's weights stay 0

    def loss(flat: Floats) -> tuple[float, Floats]:
        weights_EV = torch.zeros_like(hits_EV)
        weights_EV[:, free] = torch.from_numpy(flat).to(x_NE.device).view(len(hits_EV), -1)
        scores_NV = x_NE @ weights_EV
        scores_NV -= scores_NV.amax(1, keepdim=True)
        right = (scores_NV.gather(1, labels[:, None]) * counts_N1).sum()
        guess_NV = scores_NV.exp_()
        sums_N1 = guess_NV.sum(1, keepdim=True)
        weights_EV[-1] = 0  # intercepts cost nothing
        value = (sums_N1.log() * counts_N1).sum() - right + weights_EV.square().sum() / (2 * strength)
        slope_EV = x_NE.T @ guess_NV.mul_(counts_N1 / sums_N1) - hits_EV + weights_EV / strength
        return float(value) / len(x_NE), slope_EV[:, free].reshape(-1).cpu().numpy() / len(x_NE)

    weights = np.zeros(hits_EV.shape)
    limits = {"maxiter": iterations, "maxls": 50, "gtol": 1e-4, "ftol": 64 * np.finfo(np.float64).eps}
    with single_thread():
        found = minimize(loss, weights[:, free].ravel(), jac=True, method="L-BFGS-B", options=limits)
    weights[:, free] = found.x.reshape(len(weights), -1)
    return weights


_REMEMBERED = 10  # steps that L-BFGS keeps
_TOLERANCE = 1e-4  # the largest slope a row at which a problem is solved


def fit_logistics(
    codes_ND: Floats,
    labels_N: Indices,
    classes: int,
    counts_PN: Floats,
    strengths_P: Floats,
    *,
    iterations: int = 100,
    device: torch.device | str | None = None,
) -> Floats:
    """`fit_logistic` of the same rows P times, each with its own counts of the rows and its own strength, [P, E, V].

    All of them take their L-BFGS steps together, each of its own length, halved until the loss falls; a problem that
    is solved is put aside.
    """
    x_NE = torch.from_numpy(np.column_stack([codes_ND, np.ones(len(codes_ND))])).to(device)
    right_NV = torch.nn.functional.one_hot(torch.from_numpy(labels_N).to(device), classes).to(x_NE)
    counts_PN1 = torch.from_numpy(counts_PN).to(x_NE)[..., None]
    counts_PN1 = counts_PN1 / counts_PN1.sum(1, keepdim=True)  # the loss is a mean over the rows that count
    penalty_P = 1.0 / (torch.from_numpy(strengths_P * counts_PN.sum(1)).to(x_NE))
    found_PEV = x_NE.new_zeros(len(penalty_P), x_NE.shape[1], classes)
    held = x_NE.new_ones(x_NE.shape[1], classes)  # 0 where a weight stays 0: with two classes the first one's
    if classes == 2:
        held[:, 0] = 0.0

    def loss(flat_PX: Tensor, which: Tensor) -> tuple[Tensor, Tensor]:
        weights_PEV = flat_PX.view(-1, *held.shape)
        logs_PNV = (x_NE @ weights_PEV).log_softmax(2)
        counts = counts_PN1[which]
        kept_PEV = weights_PEV.clone()
        kept_PEV[:, -1] = 0.0  # intercepts cost nothing
        cost_P = 0.5 * penalty_P[which] * kept_PEV.square().sum((1, 2))
        value_P = cost_P - (logs_PNV * right_NV * counts).sum((1, 2))
        slope_PEV = x_NE.T @ ((logs_PNV.exp_() - right_NV) * counts) + penalty_P[which, None, None] * kept_PEV
        return value_P, (slope_PEV * held).flatten(1)

    which = torch.arange(len(found_PEV), device=x_NE.device)
    point = found_PEV.flatten(1).clone()
    value, slope = loss(point, which)
    past: list[tuple[Tensor, Tensor, Tensor]] = []  # steps, changes of the slope, and 1 / their product
    for _ in range(iterations):
        open_P = slope.abs().amax(1) > _TOLERANCE
        if not bool(open_P.all()):
            found_PEV[which] = point.view(-1, *held.shape)
            which, point, value, slope = (t[open_P] for t in (which, point, value, slope))
            past = [(s[open_P], y[open_P], r[open_P]) for s, y, r in past]
        if not len(which):
            break
        way = _direction(slope, past)
        fall = (way * slope).sum(1)
        length = torch.ones_like(fall) if past else 1.0 / slope.abs().sum(1).clamp(min=1.0)
        for _ in range(30):
            new_value, new_slope = loss(point + length[:, None] * way, which)
            short = new_value <= value + 1e-4 * length * fall
            if bool(short.all()):
                break
            length = torch.where(short, length, 0.5 * length)
        step, change = length[:, None] * way, new_slope - slope
        product = (step * change).sum(1)
        past = [*past[1 - _REMEMBERED :], (step, change, torch.where(product > 1e-300, 1.0 / product, 0.0))]
        point, value, slope = point + step, new_value, new_slope
    found_PEV[which] = point.view(-1, *held.shape)
    return found_PEV.cpu().numpy()


def _direction(slope_PX: Tensor, past: list[tuple[Tensor, Tensor, Tensor]]) -> Tensor:
    """Nocedal & Wright, algorithm 7.4: minus the slope, seen through what the last steps told of the curvature."""
    way, shares = -slope_PX, []
    for step, change, inverse in reversed(past):
        shares.append(inverse * (step * way).sum(1))
        way = way - shares[-1][:, None] * change
    if past:
        step, change, inverse = past[-1]
        scale = 1.0 / (inverse * change.square().sum(1))
        way = way * torch.where(inverse > 0, scale, 1.0)[:, None]
    for (step, change, inverse), share in zip(past, reversed(shares), strict=True):
        way = way + (share - inverse * (change * way).sum(1))[:, None] * step
    return way


def class_scores(weights: Floats, codes_MD: Floats) -> Floats:
    """The score of each class in each row [M, V]; the largest is the prediction."""
    with single_thread():
        return (torch.from_numpy(codes_MD) @ torch.from_numpy(weights[:-1]) + torch.from_numpy(weights[-1])).numpy()


def probabilities(scores_MV: Floats) -> Floats:
    with single_thread():
        return torch.from_numpy(scores_MV).softmax(1).numpy()
