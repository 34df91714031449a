"""Gradient boosting of trees of depth 3, for all factors at once: what DCI spends its time on.

The model is scikit-learn's GradientBoostingClassifier and GradientBoostingRegressor with their defaults
(Friedman 2001): 100 stages, in each a tree for every class (one for two classes, one for measurements),
splits by squared error on the residuals, leaf values by one Newton step, learning rate 0.1. The trees of
one stage do not depend on each other, so they grow side by side (trees.py).

Shape letters: N rows, D codes, K factors, C columns (trees of one stage), V values of one factor.
"""

from __future__ import annotations

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
    follow,
    grow,
    sort_codes,
    sums_below,
    value_ranks,
)

STAGES, RATE = 100, 0.1
_FLOAT = torch.float32  # whatever torch's default is
_WIDTH = 32  # columns that an operation on a CPU handles at once: 10,000 rows of them fit a core's cache
_GROUP = 64  # columns boosted side by side on a CPU; each core takes a group
_MANY = 2**25  # numbers in one matrix, beyond which columns and factors take turns


class Target(NamedTuple):
    """What one factor asks the trees to predict."""

    values: Floats  # [N], measurements, or classes 0..V-1; anything where not present
    present: NDArray[np.bool_]  # [N]
    classes: int  # V, or 0 for measurements

    @property
    def columns(self) -> int:
        """Trees a stage: one for each class, one for two classes, one for measurements."""
        return self.classes if self.classes > 2 else 1


class Boosted(NamedTuple):
    """What boosting found."""

    importance: Floats  # [D, K], the share of each code in what the trees of a factor explain; a column sums to 1 or 0
    scores: list[Floats]  # for each factor, for the test rows: log-odds [N, V], or log-odds of class 1 or values [N, 1]


class Columns(NamedTuple):
    """The factors laid side by side, one column for each tree of a stage."""

    wanted: Tensor  # [N, C], 1 where a row has the class of the column, or the measurement
    present: Tensor | None  # [N, C], 1 where the factor is not missing; None if it nowhere is
    first: Tensor  # [C], what is predicted before the first stage
    step: Tensor  # [C], learning rate times the factor of the Newton step
    curved: Tensor  # [C], 1 for classes, 0 for measurements
    slices: list[slice]  # the columns of each factor
    classes: list[int]


def lay_out(targets: list[Target], device: torch.device) -> Columns:
    ends = np.cumsum([target.columns for target in targets])
    slices = [slice(int(end) - target.columns, int(end)) for target, end in zip(targets, ends)]
    wanted, first = zip(*(_wanted(target) for target in targets))
    several = [(t.classes - 1) / t.classes if t.classes > 2 else 1.0 for t in targets]
    each = torch.tensor([t.columns for t in targets])
    classified = [float(t.classes > 0) for t in targets]
    step, curved = (torch.tensor(v, dtype=_FLOAT).repeat_interleave(each) for v in (several, classified))
    present = None
    if not all(target.present.all() for target in targets):
        present = torch.tensor(np.stack([t.present for t in targets], 1)).float().repeat_interleave(each, 1).to(device)
    return Columns(
        torch.cat(wanted, 1).to(device), present, torch.cat(first).to(device), (RATE * step).to(device),
        curved.to(device), slices, [target.classes for target in targets],
    )  # fmt: skip


def _wanted(target: Target) -> tuple[Tensor, Tensor]:
    """The columns of one factor, and their best constants: the mean, log probabilities, or log-odds of class 1."""
    values, present = torch.tensor(target.values), torch.tensor(target.present)
    if not target.classes:
        values = torch.where(present, values, 0).float()
        return values[:, None], (values.sum() / present.sum())[None]
    hits = torch.nn.functional.one_hot(torch.where(present, values, 0).long(), target.classes).float()
    share = (hits * present[:, None]).sum(0) / present.sum()
    return (hits, share.log()) if target.classes > 2 else (hits[:, 1:], torch.logit(share[1:]))


def guesses(columns: Columns, scores_NC: Tensor) -> Tensor:
    """The probability of each class, or the measurement itself [N, C]."""
    guess_NC = torch.empty_like(scores_NC)
    for part, classes in zip(columns.slices, columns.classes):
        scores = scores_NC[:, part]
        guess_NC[:, part] = _softmax(scores) if classes > 2 else scores.sigmoid() if classes else scores
    return guess_NC


def _softmax(scores_NV: Tensor) -> Tensor:
    """torch's own takes 40 ns a number on a CPU where V is small."""
    p_NV = (scores_NV - scores_NV.amax(1, keepdim=True)).exp_()
    return p_NV.div_(p_NV.sum(1, keepdim=True))


def leaf_places(lefts: list[Tensor]) -> Tensor:
    """Where the leaf of each row and column lies in a matrix [8, C] laid flat."""
    columns = lefts[0].shape[1]
    place = torch.arange(columns, device=lefts[0].device) + columns * lefts[0]
    for depth, left in enumerate(lefts[1:], 1):
        place.add_(left, alpha=columns * 2**depth)
    return place.long()


def leaf_sums(values_NC: Tensor, place_NC: Tensor) -> Tensor:
    """The sum of the values in each leaf of each column, [8, C]."""
    columns = values_NC.shape[1]
    if values_NC.is_cuda:  # adding in any order, as scatter does there, would not give the same sums twice
        return torch.stack([torch.where(place_NC // columns == leaf, values_NC, 0).sum(0) for leaf in range(8)])
    return values_NC.new_zeros(8 * columns).scatter_add_(0, place_NC.view(-1), values_NC.view(-1)).view(8, columns)


def spread(values_8C: Tensor, place_NC: Tensor) -> Tensor:
    """The value of each row's leaf [N, C]."""
    return values_8C.view(-1).index_select(0, place_NC.view(-1)).view(place_NC.shape)


def newton_step(columns: Columns, guess_NC: Tensor, block: Block, place_NC: Tensor) -> Tensor:
    """The values of the leaves [8, C]: residuals by curvature, p (1 - p) for classes and 1 for measurements."""
    curved_C, p_NC = columns.curved[block.part], guess_NC[:, block.part]
    bend_NC = torch.addcmul(1 - curved_C, p_NC, torch.addcmul(curved_C, curved_C, p_NC, value=-1))
    if block.present is not None:
        bend_NC *= block.present
    bend_8C = leaf_sums(bend_NC, place_NC)
    # A leaf that is fitted to the last bit has no curvature left, and nothing to add.
    step_8C = torch.where(bend_8C > 1e-30, leaf_sums(block.residual, place_NC) / bend_8C, 0)
    return step_8C * columns.step[block.part]


@torch.inference_mode()
def _boost(codes: Sorted, columns: Columns, test_falling_ND: Tensor, stages: int, seed: int) -> tuple[Tensor, Tensor]:
    """The gain of each code in the trees of each column [D, C], and the scores of the test rows [N, C]."""
    device, (rows, width) = columns.first.device, columns.wanted.shape
    present = torch.ones(rows, 1, device=device, dtype=_FLOAT) if columns.present is None else columns.present
    counts_DBC = sums_below(codes, bag_sums(codes, present)).expand(-1, -1, width)
    train_NC, test_NC = columns.first.repeat(rows, 1), columns.first.repeat(len(test_falling_ND), 1)
    gain_DC = torch.zeros(codes.rows.shape[0], width, dtype=torch.float64, device=device)
    # The same numbers for every factor, so that none depends on which others are there.
    generators = [torch.Generator().manual_seed(seed) for _ in columns.slices]
    if device.type == "cpu":
        width = -(-width // -(-width // _WIDTH))  # parts of about equal size
    for _ in range(stages):
        drawn = [
            torch.rand(len(gain_DC), 7, part.stop - part.start, generator=generator, dtype=_FLOAT)
            for part, generator in zip(columns.slices, generators)
        ]
        noise = torch.cat(drawn, 2).flatten(1).to(device)
        residuals = Residuals(columns.wanted, guesses(columns, train_NC), columns.present)
        levels, blocks = grow(codes, residuals, counts_DBC, noise, width=width)
        for block in blocks:
            place = leaf_places(block.lefts)
            value_8C = newton_step(columns, residuals.guess, block, place)
            train_NC[:, block.part] += spread(value_8C, place)
            test_NC[:, block.part] += spread(value_8C, leaf_places(follow(test_falling_ND, levels, block.part)))
        for level in levels:
            used_GD = torch.nn.functional.one_hot(level.code, len(gain_DC)) * level.gain.double()[:, None]
            gain_DC += used_GD.unflatten(0, (-1, gain_DC.shape[1])).sum(0).T
    return gain_DC, test_NC


def _groups(targets: list[Target], device: torch.device) -> list[list[int]]:
    """The factors that are boosted side by side."""
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
    """Boosted trees for every factor: how much each code was used, and the predictions for the test rows."""
    place = torch.device(device or "cpu")
    alive = np.flatnonzero(np.ptp(train_ND, axis=0) > 0)
    # Without any code that varies the first one stands for all: it cannot be split, so nothing is learnt.
    used = alive if len(alive) else np.arange(1)
    codes = sort_codes(train_ND[:, used], bins=bins, device=place)
    ranks_ND = value_ranks(train_ND[:, used], test_ND[:, used])
    test_falling_ND = -torch.tensor(ranks_ND, dtype=torch.float32, device=place)
    importance_DK = np.zeros((train_ND.shape[1], len(targets)))
    scores = [np.zeros((len(test_ND), target.columns)) for target in targets]

    def fit(group: list[int]) -> None:
        columns = lay_out([targets[k] for k in group], place)
        gain_DC, scores_NC = _boost(codes, columns, test_falling_ND, stages, seed)
        for k, part in zip(group, columns.slices):
            gain_D = gain_DC[:, part].sum(1).cpu().numpy()
            importance_DK[used, k] = gain_D / gain_D.sum() if gain_D.sum() > 0 else 0.0
            scores[k][:] = scores_NC[:, part].cpu().numpy()

    groups = _groups(targets, place)
    parallel_map(fit, sorted(groups, key=lambda group: -sum(targets[k].columns for k in group)))  # the longest first
    return Boosted(importance_DK, scores)
