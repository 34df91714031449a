"""The input of all metrics: types of factors, missing values, invalid arrays, splits."""

import numpy as np
import pytest
import torch
from raises import raises

from unweave.metrics.inputs import bin_edges, classes, distinct, read_table, read_test, subsample, varying_factors

RNG = np.random.default_rng(0)
CODES = RNG.normal(size=(100, 3))
CLASSES = RNG.integers(4, size=100)
MEASURED = RNG.normal(size=100)


@pytest.mark.parametrize(
    ("column", "kind"),
    [
        (CLASSES, "discrete"),
        (CLASSES > 1, "discrete"),
        (CLASSES.astype(np.uint8), "discrete"),
        (np.arange(100), "discrete"),  # integer dtypes are classes
        (CLASSES.astype(np.float32), "discrete"),
        (np.arange(100.0), "discrete"),
        (CLASSES / 7, "discrete"),  # not integers, but repeated
        (MEASURED, "continuous"),
        (MEASURED.round(1), "continuous"),  # hardly repeat
        (np.where(CLASSES == 0, np.nan, CLASSES), "discrete"),
        (np.full(100, np.nan), "discrete"),
    ],
)
def test_inferred_types(column, kind):
    assert read_table(CODES, np.asarray(column)[:, None]).factor_types == (kind,)


def test_types_are_inferred_per_column_or_given():
    both = np.column_stack([CLASSES, MEASURED])
    assert read_table(CODES, both).factor_types == ("discrete", "continuous")
    assert read_table(CODES, both, factor_types="continuous").factor_types == ("continuous", "continuous")
    assert read_table(CODES, both, factor_types=["continuous", "discrete"]).factor_types == ("continuous", "discrete")
    with raises("factor_types", value="3 types"):
        read_table(CODES, both, factor_types=["discrete"] * 3)
    with raises("factor_types", value="ordinal", accepted=["discrete", "continuous"]):
        read_table(CODES, both, factor_types="ordinal")


@pytest.mark.parametrize(
    "dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64, torch.int32, torch.bool]
)
def test_tensors_of_any_dtype(dtype):
    table = read_table(torch.tensor(CODES).to(dtype), torch.tensor(CLASSES)[:, None])
    assert table.codes.dtype == table.factors.dtype == np.float64


@pytest.mark.parametrize(
    ("codes", "factors", "argument", "value"),
    [
        ([[np.nan], [1.0]], [[0], [1]], "codes", "NaN or infinity"),
        ([[np.inf], [1.0]], [[0], [1]], "codes", "NaN or infinity"),
        ([[0.0], [1e200]], [[0], [1]], "codes", "1e+200"),
        ([[0.0], [1.0]], [[0], [-np.inf]], "factors", "infinity"),
        ([0.0, 1.0], [[0], [1]], "codes", "shape (2,)"),
        ([[0.0], [1.0]], [[0], [1], [2]], "factors", "3 rows"),
        ([["a"], ["b"]], [[0], [1]], "codes", "<U1"),
        ([[0.0], [1.0]], [["a"], ["b"]], "factors", "<U1"),
        (np.zeros((0, 2)), np.zeros((0, 2)), "codes", "shape (0, 2)"),
        (np.zeros((2, 2)) * 1j, [[0], [1]], "codes", "complex128"),
    ],
)
def test_invalid_arrays(codes, factors, argument, value):
    with raises(argument, value=value):
        read_table(codes, factors)


def test_classes_are_numbered_without_gaps_and_missing_rows_left_out():
    table = read_table(CODES[:5], np.array([[9.0], [np.nan], [-3.0], [9.0], [4.0]]))
    rows, labels = classes(table, 0)
    assert rows.tolist() == [0, 2, 3, 4] and labels.tolist() == [2, 0, 2, 1]


def test_classes_of_a_continuous_factor_are_bins():
    table = read_table(CODES, MEASURED[:, None])
    rows, labels = classes(table, 0)
    cells = np.digitize(MEASURED, np.histogram(MEASURED, 20)[1][:-1])
    np.testing.assert_array_equal(labels, np.unique(cells, return_inverse=True)[1])
    assert len(rows) == 100


def test_classes_like_those_of_another_table():
    train = read_table(CODES[:4], np.array([[1.0], [5.0], [5.0], [8.0]]), factor_types="discrete")
    test = read_table(CODES[:4], np.array([[8.0], [2.0], [1.0], [np.nan]]), factor_types="discrete")
    rows, labels = classes(test, 0, like=train)
    assert rows.tolist() == [0, 1, 2] and labels.tolist() == [2, 3, 0]  # 2.0 was never seen: the class after the last
    measured = read_table(CODES, MEASURED[:, None])
    np.testing.assert_array_equal(classes(measured, 0, like=measured)[1], classes(measured, 0)[1])
    beyond = read_table(CODES[:2], np.array([[-99.0], [99.0]]), factor_types="continuous")
    assert classes(beyond, 0, like=measured)[1].tolist() == [0, classes(measured, 0)[1].max()]


def test_distinct_equals_unique():
    for values in (np.array([3.0, 1.0, 3.0]), np.array([0.5, 1.0]), np.array([1e9, -1e9, 0.0]), np.empty(0)):
        np.testing.assert_array_equal(distinct(values), np.unique(values))


def test_factors_that_vary():
    factors = np.column_stack([np.zeros(100), CLASSES, np.full(100, np.nan), np.where(CLASSES == 0, 1.0, np.nan)])
    assert varying_factors(read_table(CODES, factors)) == [1]
    with raises("factors", value="constants over 100 rows"):
        varying_factors(read_table(CODES, factors[:, [0, 2, 3]]))


def test_edges_are_those_of_np_histogram():
    for column in (MEASURED, np.full(5, 3.0), np.arange(7.0)):
        np.testing.assert_array_equal(bin_edges(column, 20), np.histogram(column, 20)[1][:-1])


def test_random_split_is_two_to_one_and_contains_all_rows():
    table = read_table(CODES, CLASSES[:, None])
    train, test = read_test(table, None, 3)
    assert (len(train.codes), len(test.codes)) == (67, 33)
    both = np.concatenate([train.codes, test.codes])
    np.testing.assert_array_equal(np.sort(both, axis=0), np.sort(CODES, axis=0))
    again, other = read_test(table, None, 3)[1], read_test(table, None, 4)[1]
    assert np.array_equal(again.codes, test.codes) and not np.array_equal(other.codes, test.codes)
    with raises("codes", value="1 rows"):
        read_test(read_table(CODES[:1], CLASSES[:1, None]), None, 0)


def test_split_of_a_large_table_takes_the_fields_numbers():
    large = read_table(np.zeros((40_000, 1)), np.arange(40_000)[:, None])
    train, test = read_test(large, None, 0)
    assert (len(train.codes), len(test.codes)) == (10_000, 5_000)
    assert not set(train.factors[:, 0]) & set(test.factors[:, 0])


def test_a_given_test_set_must_fit():
    table = read_table(CODES, np.column_stack([CLASSES, MEASURED]))
    train, test = read_test(table, (CODES[:9], np.zeros((9, 2))), 0)
    assert train is table and test.factor_types == table.factor_types and len(test.codes) == 9
    with raises("test", accepted="codes with 3 columns"):
        read_test(table, (CODES[:9, :2], np.zeros((9, 2))), 0)
    with raises("test", accepted="factors with 2 columns"):
        read_test(table, (CODES[:9], np.zeros((9, 1))), 0)
    with raises("test", value="NaN or infinity"):
        read_test(table, (np.full((9, 3), np.nan), np.zeros((9, 2))), 0)


def test_subsample():
    table = read_table(CODES, CLASSES[:, None])
    assert subsample(table, 100, 0) is table
    part = subsample(table, 10, 0)
    assert part.codes.shape == (10, 3) and np.array_equal(part.codes, subsample(table, 10, 0).codes)
