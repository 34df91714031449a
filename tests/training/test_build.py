"""From a run's options to what trains it: how products are rounded, and every player's optimizer."""

import pytest
import torch
from raises import raises

from unweave.config.optimizers import parse_rate, resolve_optimizers
from unweave.methods import METHODS
from unweave.training.build import matmul_precision


@pytest.mark.parametrize("precision, products, convolutions", [("float32", "highest", False), ("tf32", "high", True)])
def test_precision_is_set_and_restored(precision, products, convolutions):
    before = torch.get_float32_matmul_precision(), torch.backends.cudnn.allow_tf32
    with pytest.raises(KeyboardInterrupt), matmul_precision(precision):
        assert torch.get_float32_matmul_precision() == products
        assert torch.backends.cudnn.allow_tf32 is convolutions
        raise KeyboardInterrupt
    assert (torch.get_float32_matmul_precision(), torch.backends.cudnn.allow_tf32) == before


def rates(name, lr, optimizer="adam"):
    return {player: s["lr"] for player, s in resolve_optimizers(METHODS[name], lr, 0.0, optimizer).items()}


def test_a_rate_is_for_all_players_and_a_factor_keeps_their_proportions():
    assert rates("aae", None) == {"model": 1e-4, "discriminator": 1e-4, "encoder": 3e-5}
    assert rates("aae", 0.2) == rates("aae", "0.2") == {"model": 0.2, "discriminator": 0.2, "encoder": 0.2}
    assert rates("aae", "x10") == pytest.approx({"model": 1e-3, "discriminator": 1e-3, "encoder": 3e-4})
    falling = rates("aae", "x linear(1, 0.5, 900)")
    assert falling["model"] == pytest.approx((1e-4, 5e-5, 900, 0))
    assert falling["encoder"] == pytest.approx((3e-5, 1.5e-5, 900, 0))


def test_sgd_has_the_papers_learning_rates_or_the_given_ones():
    found = resolve_optimizers(METHODS["aae_semi"], None, 2.0, "sgd")
    assert found["model"] == {"lr": 0.01, "momentum": 0.9, "clip": 2.0}
    assert found["encoder"] == found["discriminators"] == {"lr": 0.1, "momentum": 0.1, "clip": 2.0}
    assert resolve_optimizers(METHODS["vae"], 0.3, 0.0, "sgd") == {"model": {"lr": 0.3, "momentum": 0.9, "clip": 0.0}}


@pytest.mark.parametrize("lr", [None, "x0.1"])
def test_sgd_without_a_learning_rate_is_refused(lr):
    with raises("lr", value=lr):
        resolve_optimizers(METHODS["vae"], lr, 0.0, "sgd")


@pytest.mark.parametrize("lr", ["x-1", "xlinear(1, -1, 5)", "xx", "x"])
def test_an_invalid_learning_rate_factor(lr):
    with raises("lr"):
        parse_rate("lr", lr)
