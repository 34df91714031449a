"""The number of images per call follows the memory of the intermediate results."""

import pytest
import torch
from torch import nn

from unweave.nn import batch_size
from unweave.nn.batch_size import bytes_per_item, images_per_call

CPU = torch.device("cpu")


def test_new_tensors_are_counted_and_views_are_not():
    def function(x):
        y = x.flatten(1)  # a view
        return (y + 1).relu().view(-1, 2, 6)

    own = 3 * 4 * 12  # the image and its copies
    assert bytes_per_item(function, (3, 2, 2), CPU) - own == 2 * 4 * 12


def test_weights_do_not_count():
    layer = nn.Linear(12, 5)
    own = 3 * 4 * 12

    def function(x):
        return torch.nn.functional.linear(x.flatten(1), layer.weight * 2, layer.bias)

    assert bytes_per_item(function, (3, 2, 2), CPU) - own == 4 * 5


@pytest.mark.parametrize("side, expected", [(8, 100), (64, 30), (4096, 1)])
def test_calls_are_smaller_for_larger_images(monkeypatch, side, expected):
    monkeypatch.setattr(batch_size, "_CPU_BYTES", 30 * 4 * 4 * 64 * 64)
    assert images_per_call(torch.relu, (1, side, side), CPU, most=100) == expected
