import pytest
import torch
from raises import raises
from torch.distributions import Bernoulli, Laplace, Normal

import unweave as uw
from unweave.nn.autoencoder import AutoEncoder
from unweave.nn.likelihoods import LIKELIHOODS, find_likelihood


def test_nll_is_the_log_density_summed_over_pixels():
    torch.manual_seed(0)
    x, output = torch.rand(4, 3, 8, 8), 2.0 * torch.randn(4, 3, 8, 8)
    distributions = {
        "bernoulli": Bernoulli(logits=output, validate_args=False),
        "gaussian": Normal(output, 1.0),
        "laplace": Laplace(output, 1.0),
    }
    for name, distribution in distributions.items():
        likelihood, expected = find_likelihood(name), -distribution.log_prob(x).sum((1, 2, 3))
        torch.testing.assert_close(likelihood.nll(x, output), expected)
        torch.testing.assert_close(likelihood.mean(output), distribution.mean)


def test_bernoulli_of_large_logits_is_exact():
    """From logits, not from probabilities clipped near 0 and 1."""
    x, logits = torch.ones(1, 1, 1, 1), torch.full((1, 1, 1, 1), -200.0)
    assert find_likelihood("bernoulli").nll(x, logits).item() == 200.0


def test_only_a_bernoulli_likelihood_draws_black_or_white():
    x, key = torch.full((1, 1, 40, 40), 0.25), torch.tensor(1)
    assert find_likelihood("gaussian").observed(x, key) is x
    drawn = find_likelihood("bernoulli").observed(x, key)
    assert set(drawn.unique().tolist()) == {0.0, 1.0} and drawn.mean().item() == pytest.approx(0.25, abs=0.05)


@pytest.mark.parametrize("method", ["vae", "m2", "generalized_m2"])
def test_an_unknown_likelihood_is_an_error(method, tmp_path):
    with raises("likelihood", value="poisson", accepted=tuple(LIKELIHOODS)):
        AutoEncoder((1, 64, 64), 10, "locatello", "poisson")
    supervision = None if method == "vae" else "labels(n=20)"
    with raises("likelihood", value="poisson", accepted=tuple(LIKELIHOODS)):
        uw.train(method, "digits", likelihood="poisson", supervision=supervision, out=tmp_path / "run")
