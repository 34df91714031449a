import pytest
import torch
from raises import raises
from sklearn.datasets import load_digits

from unweave.data import Digits


def test_images_equal_the_bundled_ones():
    data, bundled = Digits(), load_digits()
    index = torch.arange(data.size)
    assert data.size == 1797 and data.shape == (1, 8, 8) and not data.grid
    assert torch.equal(data.images(index)[:, 0], torch.from_numpy(bundled.images).float() / 16)
    assert data.factors(index)[:, 0].tolist() == bundled.target.tolist()
    assert data.images(index).dtype == torch.float32 and data.images(index).max() == 1


def test_other_sizes_are_interpolated():
    small, large = Digits(), Digits(size=32)
    index = torch.arange(50)
    x = large.images(index)
    assert x.shape == (50, 1, 32, 32) and x.min() >= 0 and x.max() <= 1
    pooled = torch.nn.functional.avg_pool2d(x, 4)
    assert (pooled - small.images(index)).abs().mean() < 0.1


def test_digits_are_not_a_grid():
    with raises("data", value="digits"):
        Digits().index(torch.tensor([[3]]))


@pytest.mark.parametrize("size", [7, 129, 8.0, True])
def test_invalid_sizes_are_refused(size):
    with raises("size", value=size):
        Digits(size=size)
