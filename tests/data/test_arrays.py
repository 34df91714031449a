import numpy as np
import pytest
import torch

from unweave.contract import UserError
from unweave.data import load_data
from unweave.data.arrays import Arrays


def test_floats_stay_as_they_are_and_are_copied():
    images = np.random.default_rng(0).normal(size=(5, 2, 3, 4)).astype(np.float32)
    data = Arrays(images)
    expected = images[[4, 0]].copy()
    images[:] = 0
    assert np.array_equal(data.images(torch.tensor([4, 0])), expected)
    assert data.info == ((2, 3, 4), 5) and not data.grid and load_data(data) is data
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
