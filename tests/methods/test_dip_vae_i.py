import numpy as np
import pytest
import torch

from unweave.methods.dip_vae_i import DIPVAEI

# Four observations whose two means are centred, uncorrelated and of variance 1.
WHITE = np.array([[1.0, 1.0], [1.0, -1.0], [-1.0, 1.0], [-1.0, -1.0]])


def penalty(case, fixed_posterior, means, var=0.5, **weights):
    means = np.asarray(means)
    c = case(DIPVAEI, batch=len(means), latents=means.shape[1])
    c.method.autoencoder = fixed_posterior(means, np.full(means.shape, var))
    return c.out(**weights).logs["dip"].item()


def test_loss_is_equation_6(case):
    c = case(DIPVAEI, batch=6)
    terms, out = c.terms(), c.out(lambda_od=3.0, lambda_d=17.0)
    cov = np.cov(terms.q.mean.detach().numpy(), rowvar=False, bias=True)
    dip = sum((17.0 * (cov[i, i] - 1) ** 2 if i == j else 3.0 * cov[i, j] ** 2) for i in range(3) for j in range(3))
    assert out.logs["dip"].item() == pytest.approx(dip)
    assert out.losses["model"].item() == pytest.approx((terms.recon_B + terms.kl_B).mean().item() + dip)


def test_by_hand(case, log2_image):
    """Equal means have covariance 0: each variance misses 1 by 1, and 3 latents cost 3 lambda_d."""
    out = case(DIPVAEI).fix(mean=0.0, var=1.0).out(lambda_od=5.0, lambda_d=7.0)
    assert out.losses["model"].item() == pytest.approx(log2_image + 21.0)


def test_uncorrelated_unit_means_have_no_penalty(case, fixed_posterior):
    assert penalty(case, fixed_posterior, WHITE, lambda_od=5.0, lambda_d=7.0) == pytest.approx(0.0)
    assert penalty(case, fixed_posterior, WHITE + 9.0, lambda_od=5.0, lambda_d=7.0) == pytest.approx(0.0)


def test_each_weight_has_its_own_part(case, fixed_posterior):
    same = np.repeat(WHITE[:, :1], 2, axis=1)  # covariance 1 everywhere: two off-diagonal entries
    assert penalty(case, fixed_posterior, same, lambda_od=5.0, lambda_d=7.0) == pytest.approx(10.0)
    wide = WHITE * [2.0, 1.0]  # variances 4 and 1
    assert penalty(case, fixed_posterior, wide, lambda_od=5.0, lambda_d=7.0) == pytest.approx(63.0)


def test_posterior_variances_do_not_enter(case, fixed_posterior):
    means = np.random.default_rng(0).normal(size=(6, 2))
    narrow, wide = (penalty(case, fixed_posterior, means, v, lambda_od=5.0, lambda_d=7.0) for v in (0.1, 3.0))
    assert narrow == wide


def test_the_penalty_reaches_the_encoder_only(case):
    c = case(DIPVAEI)
    auto = c.method.autoencoder
    inputs = [auto.encoder[0][0].weight, auto.decoder[0].weight]
    encoder, decoder = torch.autograd.grad(c.out(lambda_od=1.0, lambda_d=1.0).logs["dip"], inputs, allow_unused=True)
    assert encoder.abs().max() > 0 and decoder is None
