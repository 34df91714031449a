"""How float32 products are rounded is a run's own affair, and nobody else's after it."""

import pytest
import torch

from unweave.build import rounding


@pytest.mark.parametrize("precision, products, convolutions", [("float32", "highest", False), ("tf32", "high", True)])
def test_rounding_is_as_asked_and_then_as_before(precision, products, convolutions):
    before = torch.get_float32_matmul_precision(), torch.backends.cudnn.allow_tf32
    with pytest.raises(KeyboardInterrupt), rounding(precision):
        assert torch.get_float32_matmul_precision() == products
        assert torch.backends.cudnn.allow_tf32 is convolutions
        raise KeyboardInterrupt
    assert (torch.get_float32_matmul_precision(), torch.backends.cudnn.allow_tf32) == before
