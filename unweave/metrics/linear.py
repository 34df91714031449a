"""Linear classifiers, fitted the way the reference's scikit-learn ones are, several times faster.

Shape letters: N rows, D codes, V classes, M test rows.
"""

from __future__ import annotations

import numpy as np
import torch
from scipy.optimize import minimize

from unweave.metrics.parallel import one_thread
from unweave.metrics.table import Floats, Indices


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
    with one_thread():
        found = minimize(loss, weights[:, free].ravel(), jac=True, method="L-BFGS-B", options=limits)
    weights[:, free] = found.x.reshape(len(weights), -1)
    return weights


def class_scores(weights: Floats, codes_MD: Floats) -> Floats:
    """The score of each class in each row [M, V]; the largest is the prediction."""
    with one_thread():
        return (torch.from_numpy(codes_MD) @ torch.from_numpy(weights[:-1]) + torch.from_numpy(weights[-1])).numpy()


def probabilities(scores_MV: Floats) -> Floats:
    with one_thread():
        return torch.from_numpy(scores_MV).softmax(1).numpy()
