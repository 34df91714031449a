"""Annealed importance sampling against known marginal likelihoods."""

import math

import pytest
import torch

from unweave.ops.annealed import annealed_log_weights, temperatures
from unweave.ops.noise import fold

KEY = fold(torch.tensor(7), "test")


def linear_gaussian(noise):
    """x = W z + noise with z ~ N(0, I): log p(x|z), and log p(x) in closed form, of 5 images of 6 numbers."""
    generator = torch.Generator().manual_seed(0)
    w_XZ = torch.randn(6, 3, generator=generator)
    x_BX = torch.randn(5, 3, generator=generator) @ w_XZ.T + noise * torch.randn(5, 6, generator=generator)
    cover = torch.distributions.MultivariateNormal(torch.zeros(6), w_XZ @ w_XZ.T + noise**2 * torch.eye(6))

    def log_likelihood(z_BZ, x_BX):
        far_B = (x_BX - z_BZ @ w_XZ.T).square().sum(1) / noise**2
        return -0.5 * far_B - 6 * math.log(noise) - 3 * math.log(2 * math.pi)

    return log_likelihood, x_BX, cover.log_prob(x_BX)


def estimate(noise, chains=64, **options):
    log_likelihood, x_BX, true_B = linear_gaussian(noise)
    many = x_BX.repeat_interleave(chains, 0)
    weights = annealed_log_weights(lambda z: log_likelihood(z, many), (len(many), 3), KEY, **options)
    return weights.view(len(x_BX), chains).logsumexp(1) - math.log(chains), true_B


@pytest.mark.parametrize("noise", [1.0, 0.3])
def test_it_finds_the_evidence_of_a_linear_gaussian_model(noise):
    found, true = estimate(noise)
    assert (found - true).abs().max() < 0.3 and (found - true).mean().abs() < 0.1


def test_the_weights_have_no_bias():
    """Many short chains: every weight is far off, their mean is not."""
    found, true = estimate(1.0, chains=4000, steps=10)
    one, _ = estimate(1.0, chains=1, steps=10)
    assert (found - true).abs().max() < 0.15 and (true - one).mean() > 0.5


def test_one_step_is_importance_sampling_from_the_prior():
    """One temperature: the weight of a chain is the likelihood at its initial position."""
    log_likelihood, x_BX, _ = linear_gaussian(1.0)
    weights = annealed_log_weights(lambda z: log_likelihood(z, x_BX), (5, 3), KEY, steps=1)
    starts = []
    annealed_log_weights(lambda z: starts.append(z.detach()) or log_likelihood(z, x_BX), (5, 3), KEY, steps=1)
    assert torch.allclose(weights, log_likelihood(starts[0], x_BX))


def test_longer_chains_have_a_smaller_error():
    """For a narrow posterior, sampling from the prior is wrong by nats."""
    errors = []
    for steps in (1, 10, 200):
        found, true = estimate(0.3, chains=16, steps=steps)
        errors.append(float((true - found).mean()))
    assert errors[0] > errors[1] + 0.5 > errors[2] + 1.0 and abs(errors[2]) < 0.2


def test_the_same_key_gives_the_same_weights():
    assert torch.equal(estimate(1.0, steps=20)[0], estimate(1.0, steps=20)[0])


def test_temperatures_go_from_0_to_1():
    betas = temperatures(50)
    assert betas[0] == 0.0 and betas[-1] == 1.0 and (betas.diff() > 0).all()


def test_transitions_to_nan_are_rejected():
    """Transitions to positions with a NaN likelihood are rejected."""
    weights = annealed_log_weights(lambda z: torch.log(1.0 - z.square().sum(1) / 25.0), (64, 2), KEY, steps=50)
    assert weights.isfinite().all()
