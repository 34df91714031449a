import numpy as np
import pytest
import torch

from unweave.data import load_data
from unweave.data.user.arrays import Arrays
from unweave.errors import UserError


def test_floats_stay_as_they_are_and_are_copied():
    images = np.random.default_rng(0).normal(size=(5, 2, 3, 4)).astype(np.float32)
    data = Arrays(images)
    expected = images[[4, 0]].copy()
    images[:] = 0
    assert np.array_equal(data.images(torch.tensor([4, 0])), expected)
    assert data.info[:2] == ((2, 3, 4), 5) and not data.grid and load_data(data) is data
    assert data.factors(torch.arange(5)).shape == (5, 0) and not data.state_dict()


def test_bytes_become_0_to_1():
    data = Arrays(np.array([0, 51, 255], dtype=np.uint8).reshape(1, 1, 1, 3))
    assert torch.allclose(data.images(torch.tensor([0])).flatten(), torch.tensor([0.0, 0.2, 1.0]))


def test_factors_become_classes():
    table = np.array([[2.5, 7], [1.0, 7], [2.5, 9]])
    data = Arrays(torch.zeros(3, 1, 2, 2), table, names=["a", "b"])
    assert data.factors(torch.arange(3)).tolist() == [[1, 0], [0, 0], [1, 1]]
    assert data.factor_sizes == (2, 2) and data.factor_values == ((1.0, 2.5), (7.0, 9.0))
    assert data.factor_names == ("a", "b")


@pytest.mark.parametrize(
    "images, options, said",
    [
        (np.zeros((3, 4)), {}, r"\(3, 4\)"),
        (np.zeros((0, 1, 2, 2)), {}, "at least one"),
        (np.full((2, 1, 2, 2), np.nan), {}, "not finite"),
        (np.zeros((2, 1, 2, 2)), {"factors": np.zeros((3, 1))}, "each of the 2 images"),
        (np.zeros((2, 1, 2, 2)), {"factors": np.zeros((2, 1)), "names": ["a", "b"]}, "2 entries for 1 factors"),
    ],
)
def test_refused(images, options, said):
    with pytest.raises(UserError, match=said):
        Arrays(images, **options)


def test_bytes_stay_bytes_until_drawn():
    data = Arrays(np.full((2, 1, 2, 2), 51, np.uint8))
    assert data.pixels.dtype == torch.uint8 and data.rows(torch.tensor([0])).dtype == torch.uint8
    assert data.images(torch.tensor([[0, 1], [1, 0]])).shape == (2, 2, 1, 2, 2)


def test_kinds_values_and_gaps():
    table = np.array([[1, 0.5], [2, np.nan], [1, 0.25]])
    data = Arrays(torch.zeros(3, 1, 2, 2), table)
    assert data.factor_types == ("discrete", "continuous")
    assert data.factors(torch.arange(3)).tolist() == [[0, 1], [1, -1], [0, 0]]
    assert np.array_equal(data.values(torch.arange(3)), [[0, 0.5], [1, np.nan], [0, 0.25]], equal_nan=True)


def test_names_are_not_repeated():
    with pytest.raises(UserError, match="twice"):
        Arrays(torch.zeros(2, 1, 2, 2), np.zeros((2, 2)), names=["a", "a"])


def test_built_in_sets_have_kinds_and_values():
    digits = load_data("digits")
    assert digits.factor_types == ("discrete",)
    assert torch.equal(digits.values(torch.arange(5)), digits.factors(torch.arange(5)).float())
