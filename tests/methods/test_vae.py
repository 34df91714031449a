import math

import pytest
import torch

from unweave.methods.vae import VAE


@pytest.mark.parametrize("likelihood", ["bernoulli", "gaussian", "laplace"])
def test_loss_is_the_negative_elbo(case, likelihood):
    c = case(VAE, likelihood=likelihood)
    out, terms = c.out(), c.terms()
    torch.testing.assert_close(out.losses["model"], (terms.recon_B + terms.kl_B).mean())
    torch.testing.assert_close(out.logs["recon"], terms.recon_B.mean())
    torch.testing.assert_close(out.logs["kl"], terms.kl_B.mean())


def test_by_hand(case, log2_image):
    """KL(N(1, 4) || N(0, 1)) = (1 + 4 - log 4 - 1) / 2 = 2 - log 2, for each of 3 latents."""
    logs = case(VAE).fix(mean=1.0, var=4.0).out().logs
    assert logs["recon"].item() == pytest.approx(log2_image)
    assert logs["kl"].item() == pytest.approx(3 * (2.0 - math.log(2.0)))
    assert case(VAE).fix(mean=0.0, var=1.0).out().logs["kl"].item() == 0.0


def test_the_loss_bounds_the_likelihood(case):
    """-loss is below log p(x) on average, by KL(q(z|x) || p(z|x)); importance sampling estimates log p(x)."""
    c = case(VAE, batch=2000)
    c.batch = c.batch._replace(x=c.batch.x[:1].expand(2000, -1, -1, -1))
    with torch.no_grad():
        terms, loss = c.terms(), c.out().losses["model"]
    prior = torch.distributions.Normal(0.0, 1.0).log_prob(terms.z).sum(1)
    log_ratio_S = prior - terms.recon_B - terms.q.log_prob(terms.z)
    evidence = log_ratio_S.logsumexp(0) - math.log(2000)
    assert -100 < -loss < evidence - 0.1


def test_the_sample_lets_gradients_through(case):
    """Reparametrised: the reconstruction error has a gradient for the encoder."""
    c = case(VAE)
    grad = torch.autograd.grad(c.out().logs["recon"], c.method.autoencoder.encoder[-1].bias)[0]
    assert (grad != 0).all()
