import math

import pytest
import torch

from unweave.methods.annealed_vae import AnnealedVAE

HYPER = {"gamma": 30.0, "c_max": 12.0, "anneal_steps": 200.0}


@pytest.mark.parametrize("step", [0, 3, 50, 1000])
def test_loss_is_equation_8(case, step):
    c = case(AnnealedVAE)
    terms = c.terms()
    capacity = 12.0 * min(step, 200) / 200
    expected = terms.recon_B.mean() + 30.0 * (terms.kl_B.mean() - capacity).abs()
    torch.testing.assert_close(c.out(step=step, **HYPER).losses["model"], expected)


@pytest.mark.parametrize(("step", "capacity"), [(0, 0.0), (100, 6.0), (200, 12.0), (10_000, 12.0)])
def test_capacity(case, step, capacity):
    assert case(AnnealedVAE).out(step=step, **HYPER).logs["capacity"].item() == pytest.approx(capacity)


def test_by_hand(case, log2_image):
    """KL 3 (2 - log 2) = 3.92 against a capacity of 6: the distance counts from below as well."""
    out = case(AnnealedVAE).fix(mean=1.0, var=4.0).out(step=100, **HYPER)
    assert out.losses["model"].item() == pytest.approx(log2_image + 30.0 * (6.0 - 3 * (2.0 - math.log(2.0))))


def test_the_distance_is_of_the_batch_mean(case, fixed_posterior):
    """Two observations with KL 0 and 4 have a mean of 2: at capacity 2 the penalty is zero."""
    c = case(AnnealedVAE, batch=2, latents=1)
    c.method.autoencoder = fixed_posterior([[0.0], [math.sqrt(8.0)]], [[1.0], [1.0]])
    assert c.out(step=1, gamma=30.0, c_max=2.0, anneal_steps=1.0).losses["model"].item() == pytest.approx(0.0, abs=1e-9)


@pytest.mark.parametrize(("c_max", "sign"), [(1.0, 1.0), (100.0, -1.0)])
def test_the_kl_is_drawn_to_the_capacity_from_both_sides(case, fixed_posterior, c_max, sign):
    c = case(AnnealedVAE, batch=1, latents=1)
    c.method.autoencoder = fixed_posterior([[3.0]], [[1.0]])  # KL 4.5
    loss = c.out(step=1, gamma=2.0, c_max=c_max, anneal_steps=1.0).losses["model"]
    grad = torch.autograd.grad(loss, c.method.autoencoder.mean_BZ)[0]
    assert grad.item() == pytest.approx(sign * 2.0 * 3.0)  # dKL/dmean = mean
