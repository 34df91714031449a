import math

import pytest
import torch
from torch.distributions import Normal, kl_divergence

from unweave.ops.divergence import kl_gaussians, kl_standard, log_gaussian, log_standard, reparametrize


@pytest.fixture
def gaussians():
    draw = torch.Generator().manual_seed(0)
    return [2.0 * torch.randn(6, 4, generator=draw, dtype=torch.float64) for _ in range(4)]


def normal(mean, logvar):
    return Normal(mean, (0.5 * logvar).exp())


def test_against_torch(gaussians):
    mean, logvar, other_mean, other_logvar = gaussians
    q, p, standard = normal(mean, logvar), normal(other_mean, other_logvar), Normal(torch.zeros_like(mean), 1.0)
    torch.testing.assert_close(kl_gaussians(mean, logvar, other_mean, other_logvar), kl_divergence(q, p))
    torch.testing.assert_close(kl_standard(mean, logvar), kl_divergence(q, standard))
    torch.testing.assert_close(log_gaussian(other_mean, mean, logvar), q.log_prob(other_mean))
    torch.testing.assert_close(log_standard(mean), standard.log_prob(mean))


def test_a_divergence_is_positive_and_zero_from_itself(gaussians):
    mean, logvar, other_mean, other_logvar = gaussians
    assert (kl_gaussians(mean, logvar, other_mean, other_logvar) > 0).all()
    assert kl_gaussians(mean, logvar, mean, logvar).abs().max() < 1e-12
    assert kl_standard(torch.zeros(3), torch.zeros(3)).tolist() == [0.0] * 3
    torch.testing.assert_close(kl_gaussians(mean, logvar, 0 * mean, 0 * mean), kl_standard(mean, logvar))


def test_by_hand():
    """KL(N(1, 4) || N(0, 1)) = 2 - log 2, and log N(2; 0, 4) = -log(8 pi) / 2 - 1 / 2."""
    assert kl_standard(torch.tensor(1.0), torch.tensor(4.0).log()).item() == pytest.approx(2 - math.log(2))
    value = log_gaussian(torch.tensor(2.0), torch.tensor(0.0), torch.tensor(4.0).log())
    assert value.item() == pytest.approx(-0.5 * math.log(8 * math.pi) - 0.5)


def test_a_sample_has_mean_and_variance_and_their_gradients(gaussians):
    mean, logvar, eps, _ = gaussians
    mean, logvar = mean.requires_grad_(), logvar.requires_grad_()
    z = reparametrize(mean, logvar, eps)
    torch.testing.assert_close(z, mean + logvar.exp().sqrt() * eps)
    to_mean, to_logvar = torch.autograd.grad(z.sum(), (mean, logvar))
    torch.testing.assert_close(to_mean, torch.ones_like(mean))
    torch.testing.assert_close(to_logvar, 0.5 * (z - mean))


def test_extreme_posteriors_stay_finite():
    """A posterior of variance e^-20 or e^20, as early training makes them, in float32."""
    logvar = torch.tensor([-20.0, 20.0])
    assert kl_standard(torch.zeros(2), logvar).isfinite().all()
    assert log_gaussian(torch.zeros(2), torch.zeros(2), logvar).isfinite().all()
