import numpy as np
import pytest

from unweave.methods.dip_vae_ii import DIPVAEII

# Four observations whose two means are centred, uncorrelated and of variance 1.
WHITE = np.array([[1.0, 1.0], [1.0, -1.0], [-1.0, 1.0], [-1.0, -1.0]])


def penalty(case, fixed_posterior, means, variances, **weights):
    means = np.asarray(means)
    c = case(DIPVAEII, batch=len(means), latents=means.shape[1])
    c.method.autoencoder = fixed_posterior(means, np.broadcast_to(variances, means.shape).copy())
    return c.out(**weights).logs["dip"].item()


def test_loss_is_equation_7(case):
    c = case(DIPVAEII, batch=6)
    terms, out = c.terms(), c.out(lambda_od=3.0, lambda_d=17.0)
    cov = np.cov(terms.q.mean.detach().numpy(), rowvar=False, bias=True)
    var = terms.q.variance.detach().numpy()
    dip = 0.0
    for i in range(3):
        dip += 17.0 * (cov[i, i] + sum(var[b, i] for b in range(6)) / 6 - 1) ** 2
        dip += sum(3.0 * cov[i, j] ** 2 for j in range(3) if j != i)
    assert out.logs["dip"].item() == pytest.approx(dip)
    assert out.losses["model"].item() == pytest.approx((terms.recon_B + terms.kl_B).mean().item() + dip)


def test_by_hand(case, log2_image):
    """With q(z|x) the prior for every x the aggregate is the prior: no penalty, unlike in DIP-VAE-I."""
    out = case(DIPVAEII).fix(mean=0.0, var=1.0).out(lambda_od=5.0, lambda_d=7.0)
    assert out.losses["model"].item() == pytest.approx(log2_image)


def test_variances_of_means_and_of_posteriors_add_up(case, fixed_posterior):
    weights = {"lambda_od": 5.0, "lambda_d": 7.0}
    assert penalty(case, fixed_posterior, WHITE * np.sqrt(0.7), 0.3, **weights) == pytest.approx(0.0)
    assert penalty(case, fixed_posterior, WHITE, 0.3, **weights) == pytest.approx(2 * 7.0 * 0.3**2)


def test_posterior_variances_enter_the_diagonal_only(case, fixed_posterior):
    """With weight only on off-diagonal entries they have no effect."""
    means = np.random.default_rng(0).normal(size=(6, 2))
    weights = {"lambda_od": 5.0, "lambda_d": 0.0}
    narrow, wide = (penalty(case, fixed_posterior, means, v, **weights) for v in (0.1, [3.0, 0.5]))
    assert narrow == pytest.approx(wide) and narrow > 0
    assert penalty(case, fixed_posterior, WHITE, [3.0, 0.5], **weights) == pytest.approx(0.0)


def test_it_is_the_covariance_of_samples(case, fixed_posterior):
    """The law of total covariance: the penalised matrix is that of draws from the aggregate posterior."""
    rng = np.random.default_rng(0)
    means, std = rng.normal(size=(5, 2)), np.array([0.4, 1.3])
    samples = (means[:, None] + std * rng.normal(size=(5, 100_000, 2))).reshape(-1, 2)
    cov = np.cov(samples, rowvar=False)
    expected = 5.0 * 2 * cov[0, 1] ** 2 + 7.0 * ((cov[0, 0] - 1) ** 2 + (cov[1, 1] - 1) ** 2)
    ours = penalty(case, fixed_posterior, means, std**2, lambda_od=5.0, lambda_d=7.0)
    assert ours == pytest.approx(expected, rel=0.02)
