import numpy as np
import pytest
import torch
from raises import raises

from unweave.data import load_data
from unweave.data.user.arrays import Arrays


def test_floats_are_copied_unchanged():
    images = np.random.default_rng(0).normal(size=(5, 2, 3, 4)).astype(np.float32)
    data = Arrays(images)
    expected = images[[4, 0]].copy()
    images[:] = 0
    assert np.array_equal(data.images(torch.tensor([4, 0])), expected)
    assert data.info[:2] == ((2, 3, 4), 5) and not data.grid and load_data(data) is data
    assert data.factors(torch.arange(5)).shape == (5, 0) and not data.state_dict()


def test_bytes_are_scaled_to_0_to_1():
    data = Arrays(np.array([0, 51, 255], dtype=np.uint8).reshape(1, 1, 1, 3))
    assert torch.allclose(data.images(torch.tensor([0])).flatten(), torch.tensor([0.0, 0.2, 1.0]))


def test_factor_values_are_numbered_as_classes():
    table = np.array([[2.5, 7], [1.0, 7], [2.5, 9]])
    data = Arrays(torch.zeros(3, 1, 2, 2), table, names=["a", "b"])
    assert data.factors(torch.arange(3)).tolist() == [[1, 0], [0, 0], [1, 1]]
    assert data.factor_sizes == (2, 2) and data.factor_values == ((1.0, 2.5), (7.0, 9.0))
    assert data.factor_names == ("a", "b")


@pytest.mark.parametrize(
    "images, options, argument, value",
    [
        (np.zeros((3, 4)), {}, "images", [3, 4]),
        (np.zeros((0, 1, 2, 2)), {}, "images", [0, 1, 2, 2]),
        (np.full((2, 1, 2, 2), np.nan), {}, "images", "nan or infinity"),
        (np.zeros((2, 1, 2, 2)), {"factors": np.zeros((3, 1))}, "factors", [3, 1]),
        (np.zeros((2, 1, 2, 2)), {"factors": np.zeros((2, 1)), "names": ["a", "b"]}, "names", ["a", "b"]),
        (np.zeros((2, 1, 2, 2)), {"factors": np.zeros((2, 2)), "names": ["a", "a"]}, "names", ["a", "a"]),
    ],
)
def test_invalid_arrays_are_refused(images, options, argument, value):
    with raises(argument, value=value):
        Arrays(images, **options)


def test_bytes_are_stored_as_bytes():
    data = Arrays(np.full((2, 1, 2, 2), 51, np.uint8))
    assert data.pixels.dtype == torch.uint8 and data.raw_images(torch.tensor([0])).dtype == torch.uint8
    assert data.images(torch.tensor([[0, 1], [1, 0]])).shape == (2, 2, 1, 2, 2)


def test_factor_types_values_and_missing_values():
    table = np.array([[1, 0.5], [2, np.nan], [1, 0.25]])
    data = Arrays(torch.zeros(3, 1, 2, 2), table)
    assert data.factor_types == ("discrete", "continuous")
    assert data.factors(torch.arange(3)).tolist() == [[0, 1], [1, -1], [0, 0]]
    assert np.array_equal(data.values(torch.arange(3)), [[0, 0.5], [1, np.nan], [0, 0.25]], equal_nan=True)


def test_built_in_data_sets_have_factor_types_and_values():
    digits = load_data("digits")
    assert digits.factor_types == ("discrete",)
    assert torch.equal(digits.values(torch.arange(5)), digits.factors(torch.arange(5)).float())


def test_devices_without_float64():
    """On such a device values have fewer digits; `exact_values` has all of them."""
    times = 1.7e9 + np.arange(4)[:, None] / 4
    data = Arrays(np.zeros((4, 1, 8, 8), np.uint8), times, names=["time"])

    def convert(tensor):
        if tensor.dtype == torch.float64:
            raise TypeError("float64 is not supported")
        return tensor

    data._apply(convert)
    assert data.values(torch.arange(4)).dtype == torch.float32
    assert data.exact_values(torch.tensor([3, 0]))[:, 0].tolist() == [1.7e9 + 0.75, 1.7e9]
