"""Gradient boosting of trees of depth 3 for all factors at once, the slow part of DCI.

The model is scikit-learn's GradientBoostingClassifier and GradientBoostingRegressor with their defaults
(Friedman 2001): 100 stages, each with one tree per class (a single tree for two classes or for numbers), splits by
squared error of the residuals, leaf values by one Newton step, learning rate 0.1. The trees of one stage are
independent and grow together (trees.py).

Shape letters: N rows, D codes, K factors, C columns (trees of one stage), V values of one factor.
"""

from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from unweave.metrics.inputs import Floats
from unweave.metrics.parallel import parallel_map
from unweave.metrics.solvers.trees import (
    BINS,
    Block,
    Residuals,
    Sorted,
    bag_sums,
    grow,
    sort_codes,
    sums_below,
    tree_paths,
    value_ranks,
)

STAGES, RATE = 100, 0.1
_FLOAT = torch.float32  # independent of torch's default dtype
_WIDTH = 32  # columns per operation on a CPU; 10,000 rows of them fit into the cache of a core
_GROUP = 64  # columns per job on a CPU; each core runs one job
_MANY = 2**25  # largest number of entries of a matrix on a GPU


class Target(NamedTuple):
    """The values of one factor that the trees predict."""

    values: Floats  # [N], numbers, or classes 0..V-1; arbitrary if not present
    present: NDArray[np.bool_]  # [N]
    classes: int  # V, or 0 for numbers

    @property
    def columns(self) -> int:
        """Number of trees per stage: one per class, or a single one for two classes or numbers."""
        return self.classes if self.classes > 2 else 1


class Boosted(NamedTuple):
    """Result of boosting."""

    importance: Floats  # [D, K], share of the total gain of each code in the trees of a factor; a column sums to 1 or 0
    scores: list[Floats]  # per factor on the test rows: log-odds [N, V], or log-odds of class 1 or values [N, 1]


class Columns(NamedTuple):
    """The targets of all factors, one column per tree of a stage."""

    target: Tensor  # [N, C], 1 if a row has the class of the column, else 0; or the number
    present: Tensor | None  # [N, C], 1 if the factor is known, else 0; None if all values are known
    first: Tensor  # [C], prediction before the first stage
    step: Tensor  # [C], learning rate times the factor of the Newton step
    is_class: Tensor  # [C], 1 for classes, 0 for numbers
    slices: list[slice]  # the columns of each factor
    classes: list[int]


def stack_targets(targets: list[Target], device: torch.device) -> Columns:
    ends = np.cumsum([target.columns for target in targets])
    slices = [slice(int(end) - target.columns, int(end)) for target, end in zip(targets, ends)]
    target, first = zip(*(_target_columns(target) for target in targets))
    several = [(t.classes - 1) / t.classes if t.classes > 2 else 1.0 for t in targets]
    each = torch.tensor([t.columns for t in targets])
    classified = [float(t.classes > 0) for t in targets]
    step, is_class = (torch.tensor(v, dtype=_FLOAT).repeat_interleave(each) for v in (several, classified))
    present = None
    if not all(target.present.all() for target in targets):
        present = torch.tensor(np.stack([t.present for t in targets], 1)).float().repeat_interleave(each, 1).to(device)
    return Columns(
        torch.cat(target, 1).to(device), present, torch.cat(first).to(device), (RATE * step).to(device),
        is_class.to(device), slices, [target.classes for target in targets],
    )  # fmt: skip


def _target_columns(target: Target) -> tuple[Tensor, Tensor]:
    """Return the columns of one factor and their best constants: mean, log probabilities, or log-odds of class 1."""
    values, present = torch.tensor(target.values), torch.tensor(target.present)
    if not target.classes:
        values = torch.where(present, values, 0).float()
        return values[:, None], (values.sum() / present.sum())[None]
    hits = torch.nn.functional.one_hot(torch.where(present, values, 0).long(), target.classes).float()
    share = (hits * present[:, None]).sum(0) / present.sum()
    return (hits, share.log()) if target.classes > 2 else (hits[:, 1:], torch.logit(share[1:]))


def predictions(columns: Columns, scores_NC: Tensor) -> Tensor:
    """Return the probability of each class, or the predicted number [N, C]."""
    prediction_NC = torch.empty_like(scores_NC)
    for part, classes in zip(columns.slices, columns.classes):
        scores = scores_NC[:, part]
        if classes > 2:  # the softmax; torch.softmax takes 40 ns per entry on a CPU if V is small
            p_NV = (scores - scores.amax(1, keepdim=True)).exp_()
            prediction_NC[:, part] = p_NV.div_(p_NV.sum(1, keepdim=True))
        else:
            prediction_NC[:, part] = scores.sigmoid() if classes else scores
    return prediction_NC


def leaf_indices(lefts: list[Tensor]) -> Tensor:
    """Return the flat index of the leaf of each row and column in a matrix [8, C]."""
    columns = lefts[0].shape[1]
    leaf_NC = torch.arange(columns, device=lefts[0].device) + columns * lefts[0]
    for depth, left in enumerate(lefts[1:], 1):
        leaf_NC.add_(left, alpha=columns * 2**depth)
    return leaf_NC.long()


def leaf_sums(values_NC: Tensor, leaf_NC: Tensor) -> Tensor:
    """Return the sum of the values in each leaf of each column, [8, C]."""
    columns = values_NC.shape[1]
    if values_NC.is_cuda:  # scatter_add_ is not deterministic on CUDA
        return torch.stack([torch.where(leaf_NC // columns == leaf, values_NC, 0).sum(0) for leaf in range(8)])
    return values_NC.new_zeros(8 * columns).scatter_add_(0, leaf_NC.view(-1), values_NC.view(-1)).view(8, columns)


def leaf_values(values_8C: Tensor, leaf_NC: Tensor) -> Tensor:
    """Return the value of the leaf of each row [N, C]."""
    return values_8C.view(-1).index_select(0, leaf_NC.view(-1)).view(leaf_NC.shape)


def newton_step(columns: Columns, prediction_NC: Tensor, block: Block, leaf_NC: Tensor) -> Tensor:
    """Return the leaf values [8, C]: residuals / curvature, which is p (1 - p) for classes and 1 for numbers."""
    is_class_C, p_NC = columns.is_class[block.part], prediction_NC[:, block.part]
    curvature_NC = torch.addcmul(1 - is_class_C, p_NC, torch.addcmul(is_class_C, is_class_C, p_NC, value=-1))
    if block.present is not None:
        curvature_NC *= block.present
    curvature_8C = leaf_sums(curvature_NC, leaf_NC)
    # A perfectly fitted leaf has curvature 0 and gets value 0.
    step_8C = torch.where(curvature_8C > 1e-30, leaf_sums(block.residual, leaf_NC) / curvature_8C, 0)
    return step_8C * columns.step[block.part]


@torch.inference_mode()
def _boost(
    codes: Sorted, columns: Columns, test_negative_rank_ND: Tensor, stages: int, seed: int
) -> tuple[Tensor, Tensor]:
    """Return the gain of each code in the trees of each column [D, C] and the scores of the test rows [N, C]."""
    device, (rows, width) = columns.first.device, columns.target.shape
    present = torch.ones(rows, 1, device=device, dtype=_FLOAT) if columns.present is None else columns.present
    counts_DBC = sums_below(codes, bag_sums(codes, present)).expand(-1, -1, width)
    train_NC, test_NC = columns.first.repeat(rows, 1), columns.first.repeat(len(test_negative_rank_ND), 1)
    gain_DC = torch.zeros(codes.rows.shape[0], width, dtype=torch.float64, device=device)
    # The same random numbers for every factor, so that no factor depends on which others are fitted.
    generators = [torch.Generator().manual_seed(seed) for _ in columns.slices]
    if device.type == "cpu":
        width = -(-width // -(-width // _WIDTH))  # parts of about equal size
    for _ in range(stages):
        drawn = [
            torch.rand(len(gain_DC), 7, part.stop - part.start, generator=generator, dtype=_FLOAT)
            for part, generator in zip(columns.slices, generators)
        ]
        noise = torch.cat(drawn, 2).flatten(1).to(device)
        residuals = Residuals(columns.target, predictions(columns, train_NC), columns.present)
        levels, blocks = grow(codes, residuals, counts_DBC, noise, width=width)
        for block in blocks:
            leaf_NC = leaf_indices(block.lefts)
            value_8C = newton_step(columns, residuals.prediction, block, leaf_NC)
            train_NC[:, block.part] += leaf_values(value_8C, leaf_NC)
            test_leaf_NC = leaf_indices(tree_paths(test_negative_rank_ND, levels, block.part))
            test_NC[:, block.part] += leaf_values(value_8C, test_leaf_NC)
        for level in levels:
            used_GD = torch.nn.functional.one_hot(level.code, len(gain_DC)) * level.gain.double()[:, None]
            gain_DC += used_GD.unflatten(0, (-1, gain_DC.shape[1])).sum(0).T
    return gain_DC, test_NC


def _groups(targets: list[Target], device: torch.device) -> list[list[int]]:
    """Return the groups of factors that are boosted together."""
    rows = len(targets[0].values)
    most = max(1, _MANY // rows) if device.type == "cuda" else _GROUP
    groups: list[list[int]] = []
    used = most
    for k, target in enumerate(targets):
        used += target.columns
        if used > most:
            groups.append([])
            used = target.columns
        groups[-1].append(k)
    return groups


def boost(
    train_ND: Floats,
    targets: list[Target],
    test_ND: Floats,
    *,
    stages: int = STAGES,
    bins: int = BINS,
    seed: int = 0,
    device: str | torch.device | None = None,
) -> Boosted:
    """Fit boosted trees for every factor; return the importance of the codes and the scores of the test rows."""
    on = torch.device(device or "cpu")
    varying = np.flatnonzero(np.ptp(train_ND, axis=0) > 0)
    # If no code varies, the first one is used: it cannot be split, so the trees stay constant.
    used = varying if len(varying) else np.arange(1)
    codes = sort_codes(train_ND[:, used], bins=bins, device=on)
    ranks_ND = value_ranks(train_ND[:, used], test_ND[:, used])
    test_negative_rank_ND = -torch.tensor(ranks_ND, dtype=torch.float32, device=on)
    importance_DK = np.zeros((train_ND.shape[1], len(targets)))
    scores = [np.zeros((len(test_ND), target.columns)) for target in targets]

    def fit(group: list[int]) -> None:
        columns = stack_targets([targets[k] for k in group], on)
        gain_DC, scores_NC = _boost(codes, columns, test_negative_rank_ND, stages, seed)
        for k, part in zip(group, columns.slices):
            gain_D = gain_DC[:, part].sum(1).cpu().numpy()
            importance_DK[used, k] = gain_D / gain_D.sum() if gain_D.sum() > 0 else 0.0
            scores[k][:] = scores_NC[:, part].cpu().numpy()

    groups = _groups(targets, on)
    parallel_map(fit, sorted(groups, key=lambda group: -sum(targets[k].columns for k in group)))  # longest first
    return Boosted(importance_DK, scores)
