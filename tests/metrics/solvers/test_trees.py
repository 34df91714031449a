"""Trees grown side by side: against exhaustive search and scikit-learn's trees."""

import numpy as np
import pytest
import torch
from sklearn.tree import DecisionTreeRegressor

from unweave.metrics.solvers import trees
from unweave.metrics.solvers.trees import (
    Residuals,
    bag_sums,
    bin_end_positions,
    bin_ends,
    goes_left,
    grow,
    sort_codes,
    sums_below,
    tree_paths,
    value_ranks,
)

CPU = torch.device("cpu")


def one_stage(codes, residual, present=None, bins=128, width=32, seed=0):
    """The splits and the leaves of one tree for each column of residuals."""
    found = sort_codes(codes, bins=bins, device=CPU)
    wanted = torch.tensor(residual, dtype=torch.float32)
    there = torch.ones(len(codes), 1) if present is None else torch.tensor(present, dtype=torch.float32)
    counts = sums_below(found, bag_sums(found, there)).expand(-1, -1, wanted.shape[1])
    noise = torch.rand(codes.shape[1], 7 * wanted.shape[1], generator=torch.Generator().manual_seed(seed))
    table = Residuals(wanted, torch.zeros_like(wanted), None if present is None else there)
    return found, *grow(found, table, counts, noise, width=width)


def leaf_numbers(lefts):
    return sum(left * 2**depth for depth, left in enumerate(lefts)).numpy().astype(int)


def leaf_means(leaf, residual):
    sums, counts = np.bincount(leaf, residual, 8), np.bincount(leaf, minlength=8)
    return (sums / np.maximum(counts, 1))[leaf]


def best_gain(codes, residual):
    """The largest gain over all codes and all values, tried one by one."""
    gains = [0.0]
    for code in codes.T:
        for limit in np.unique(code)[:-1]:
            left = code <= limit
            parts = residual[left], residual[~left]
            gains.append(sum(p.sum() ** 2 / len(p) for p in parts) - residual.sum() ** 2 / len(residual))
    return max(gains)


@pytest.mark.parametrize("rows", [8, 60, 120])
def test_trees_are_those_of_scikit_learn(rows):
    rng = np.random.default_rng(rows)
    codes, residual = rng.normal(size=(rows, 4)), rng.normal(size=(rows, 3))
    _, _, blocks = one_stage(codes, residual)
    for column in range(3):
        tree = DecisionTreeRegressor(max_depth=3).fit(codes, residual[:, column])
        ours = leaf_means(leaf_numbers([left[:, column] for left in blocks[0].lefts]), residual[:, column])
        np.testing.assert_allclose(ours, tree.predict(codes), atol=1e-5)


def test_gains_of_many_values_are_nearly_optimal():
    """3,000 values in 128 bins: rows around bin edges are examined one by one."""
    rng = np.random.default_rng(0)
    codes = rng.normal(size=(3000, 3))
    residual = np.column_stack([rng.normal(size=3000), (codes[:, 1] > 0.123) - 0.5, rng.normal(size=3000) ** 9])
    _, levels, _ = one_stage(codes, residual)
    exact = np.array([best_gain(codes, column) for column in residual.T])
    assert (levels[0].gain.numpy() > 0.9 * exact).all()
    assert levels[0].gain[1].item() == pytest.approx(exact[1], rel=1e-4)


def test_a_single_row_at_the_edge_of_a_node_is_found():
    """All other residuals are equal, and the odd one lies next to a cut in the middle of the code."""
    codes = np.random.default_rng(0).permutation(4000)[:, None].astype(float)
    residual = np.where(codes < 2000, -1.0, 1.0) + 9 * (codes == 2000)
    _, levels, blocks = one_stage(codes, residual)
    assert levels[1].gain.numpy() == pytest.approx([81.0, 0.0], abs=0.1)  # right of the first cut, left of it
    assert leaf_means(leaf_numbers(blocks[0].lefts)[:, 0], residual[:, 0]) == pytest.approx(residual[:, 0], abs=1e-3)


def test_gain_is_the_fall_of_the_squared_residuals():
    rng = np.random.default_rng(1)
    codes, residual = rng.normal(size=(500, 2)), rng.normal(size=(500, 1))
    _, levels, blocks = one_stage(codes, residual)
    left = residual[:, 0] - leaf_means(leaf_numbers(blocks[0].lefts)[:, 0], residual[:, 0])
    centred = residual[:, 0] - residual.mean()
    gained = sum(level.gain.sum().item() for level in levels)
    assert gained == pytest.approx((centred**2).sum() - (left**2).sum(), rel=1e-4)


def test_other_rows_follow_the_same_splits():
    rng = np.random.default_rng(2)
    codes, residual = rng.normal(size=(700, 3)), rng.normal(size=(700, 5))
    found, levels, blocks = one_stage(codes, residual)
    for ours, theirs in zip(tree_paths(found.negative_rank, levels, slice(0, 5)), blocks[0].lefts):
        torch.testing.assert_close(ours, theirs)
    between = value_ranks(codes, codes + 1e-9)
    np.testing.assert_array_equal(between, value_ranks(codes, codes))


def test_columns_are_independent_of_each_other_and_of_blocks():
    rng = np.random.default_rng(3)
    codes, residual = rng.normal(size=(400, 3)), rng.normal(size=(400, 7))
    _, together, _ = one_stage(codes, residual)
    _, in_parts, _ = one_stage(codes, residual, width=3)
    for whole, part in zip(together, in_parts):
        assert all(torch.equal(a, b) for a, b in zip(whole, part))
    _, alone, _ = one_stage(codes, residual[:, 2:3])
    assert [level.gain.view(-1, 7)[:, 2].tolist() for level in together] == [a.gain.tolist() for a in alone]


def test_missing_rows_do_not_change_the_trees():
    rng = np.random.default_rng(4)
    codes, residual = rng.normal(size=(300, 3)), rng.normal(size=(300, 1))
    present = rng.random((300, 1)) < 0.6
    _, levels, _ = one_stage(codes, residual * present, present=present)
    kept = present[:, 0]
    _, fewer, _ = one_stage(codes[kept], residual[kept])
    for ours, theirs in zip(levels, fewer):
        torch.testing.assert_close(ours.gain, theirs.gain, rtol=1e-3, atol=1e-4)
        assert torch.equal(ours.code, theirs.code)


def test_equal_codes_are_used_equally_often():
    rng = np.random.default_rng(5)
    code = rng.normal(size=(300, 1))
    residual = np.sign(code - rng.normal(size=(1, 200)))
    _, levels, _ = one_stage(np.hstack([code, code, -code]), residual, width=200)
    share = np.bincount(levels[0].code.numpy(), minlength=3) / 200
    assert share == pytest.approx([1 / 3] * 3, abs=0.12)


@pytest.mark.parametrize("values", [2, 3, 40, 5000])
def test_sums_below_bins(values):
    """Few values make bins of more rows than are added up at once."""
    rng = np.random.default_rng(6)
    codes = np.column_stack([rng.integers(values, size=9500), rng.normal(size=9500)]).astype(float)
    found = sort_codes(codes, bins=64, device=CPU)
    assert (found.parts is not None) == (values <= 2)
    weights = rng.normal(size=(9500, 2))
    ours = sums_below(found, bag_sums(found, torch.tensor(weights, dtype=torch.float32))).numpy()
    for d, code in enumerate(codes.T):
        order = np.argsort(code, kind="stable")
        expected = np.cumsum(weights[order], axis=0)[found.ends[d].numpy()]
        np.testing.assert_allclose(ours[d], expected, atol=2e-3)


def test_two_counts_share_a_number_without_rounding():
    rng = np.random.default_rng(7)
    codes = rng.integers(2, size=(9500, 1)).astype(float)
    found, _, _ = one_stage(codes, rng.normal(size=(9500, 2)))
    lefts = [(torch.rand(9500, 2) < 0.5).float() for _ in range(2)]
    block = trees.Block(slice(0, 2), torch.zeros(9500, 2), None, lefts)
    _, counts = trees.left_sums(found, block)
    below = sums_below(found, counts)[0, -1]
    expected = torch.cat([(lefts[1] * (1 - lefts[0])).sum(0), (lefts[1] * lefts[0]).sum(0)])
    assert torch.equal(below, expected)


def test_bins_are_values_or_narrow_at_the_ends():
    few = np.repeat([0, 3, 4], [5, 1, 2])
    assert bin_ends(few, 10).tolist() == [4, 5, 7]
    places = bin_end_positions(10_000, 128)
    width = np.diff(places)
    assert 100 < len(places) < 128
    assert width[:4].max() <= 2 and width[-4:].max() <= 2 and 100 < width.max() < 250
    many = np.arange(10_000)
    ends = bin_ends(many, 128)
    assert ends[-1] == 9_999 and len(ends) <= 128 and (np.diff(ends) > 0).all()
    ties = np.repeat([0, 1], [9_000, 1_000]) + np.maximum(np.arange(10_000) - 9_500, 0)
    assert 9_499 in bin_ends(ties, 128).tolist() or 8_999 in bin_ends(ties, 128).tolist()


def test_a_limit_lies_halfway_to_the_next_row_of_the_node():
    codes = np.array([[0.0], [1.0], [2.0], [7.0], [8.0], [9.0]])
    found, levels, _ = one_stage(codes, np.array([[-1.0], [-1.0], [-1.0], [1.0], [1.0], [1.0]]))
    ranks = -torch.tensor(value_ranks(codes, np.array([[4.4], [4.6]])), dtype=torch.float32)
    assert goes_left(ranks, levels[0], slice(0, 1), []).flatten().tolist() == [1.0, 0.0]
    assert found.order.tolist() == [[0, 1, 2, 3, 4, 5]]
